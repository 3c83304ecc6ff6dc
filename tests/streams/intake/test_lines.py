"""What `pvstream ingest --mask` makes of a line."""

from __future__ import annotations

from typing import Any

import pytest

from streams.codec import BadRecord
from streams.intake.authors import AuthorKeys
from streams.intake.intake import Privacy, masked_report
from streams.records import Masked, Report

PRIVACY = Privacy(AuthorKeys(b"k" * 16), ("US",))


def read(privacy: Privacy = PRIVACY, **fields: Any) -> Report:
    return masked_report({"id": "1", "text": "@bob took zoloft"} | fields, privacy)


def test_the_text_is_masked_and_the_author_is_hashed() -> None:
    report = read(author="alice", user="alice", created_at="2026-03-04")
    assert (report.text, report.masked) == ("@user took zoloft", (Masked("user", 0, 5),))
    assert report.author == PRIVACY.keys.hash("@Alice")
    assert (report.meta, report.meta_dropped) == ({}, 1)
    assert report.created_at_assumed_utc


def test_a_national_number_of_the_country_that_a_line_states_is_masked() -> None:
    text = "zoloft gave me a rash, call 030 12345678"
    assert read(text=text, country="de", drug=["Zoloft", "030 12345678"]) == Report(
        id="1",
        text="zoloft gave me a rash, call [phone]",
        drug="Zoloft",
        country="de",
        masked=(Masked("phone", 28, 35),),
    )
    assert read(text=text, country="Germany").masked == ()


def test_a_stated_drug_or_indication_that_names_a_person_goes_no_further() -> None:
    report = read(drug=["@alice", "Zoloft", "call 202 555 0143"], indication="low mood")
    assert (report.drug, report.indication) == ("Zoloft", "low mood")
    report = read(drug="@alice", indication="low mood, says @alice")
    assert (report.drug, report.indication) == (None, None)


def test_an_author_may_be_a_number_and_needs_a_key_and_leave_to_be_kept() -> None:
    assert read(Privacy(AuthorKeys(), ()), author="alice").author is None
    forbidden = read(author="alice", permalink="https://example.org/alice", aggregate_only=True)
    assert (forbidden.author, forbidden.permalink) == (None, None)
    assert read(author=7).author == PRIVACY.keys.hash("7")
    assert [read(author=value).author for value in (True, 7.5, "", None, ["7"])] == [None] * 5


def test_an_object_that_is_no_report_is_refused_without_being_quoted() -> None:
    for content in ({"id": "secret"}, {"id": "1", "text": "@secret " * 1001}):
        with pytest.raises(BadRecord) as refused:
            masked_report(dict(content), PRIVACY)
        assert "secret" not in str(refused.value)
