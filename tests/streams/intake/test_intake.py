"""From a post to the report that is sent: what is left out, masked, hashed and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest

from streams import metrics
from streams.input_reports import as_input, read_report
from streams.intake import intake as intake_module
from streams.intake.authors import AuthorKeys
from streams.intake.filter import Terms, drug_terms
from streams.intake.intake import PostIntake
from streams.intake.items import Post
from streams.records import MAX_TEXT, Masked
from streams.settings import Settings

KEY, OLD = "k" * 32, "o" * 32
POST = Post(
    id="at://1",
    text="@bob my zoloft keeps me awake all night, see https://t.co/x",
    created_at=datetime(2026, 3, 4, 9, 15, tzinfo=UTC),
    language="en",
    author="@Alice.bsky.social",
    country="NL",
    permalink="https://bsky.app/profile/alice/post/1",
)


@pytest.fixture(scope="module", autouse=True)
def terms_made_once() -> Iterator[None]:
    """The automaton of the lexicon's names takes 0.3 seconds to make."""
    terms_of = cache(Terms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake_module, "drug_terms", cache(drug_terms))
        patch.setattr(intake_module, "Terms", lambda terms: terms_of(tuple(terms)))
        yield


def intake(**settings: Any) -> PostIntake:
    given: dict[str, Any] = {"author_key": KEY, "duplicate_reports": 1000} | settings
    return PostIntake.of(Settings(**given))


def passed(outcome: str) -> float:
    value: float = metrics.INTAKE.labels(outcome)._value.get()
    return value


def test_a_post_becomes_a_report_that_is_read_back_from_the_topic() -> None:
    taken = intake()
    assert isinstance(taken, PostIntake)
    report = taken.take(POST)
    assert report is not None
    assert report.text == "@user my zoloft keeps me awake all night, see [url]"
    assert report.masked == (Masked("user", 0, 5), Masked("url", 46, 51))
    assert (report.language, report.country, report.permalink) == ("en", "NL", POST.permalink)
    assert report.author == taken.author_hash("alice.bsky.social")
    assert read_report(as_input(report)) == report
    assert taken.take(POST) == report, "a repeat is equal"


@pytest.mark.parametrize(
    ("stated", "meta"),
    [
        ("1792-06-01T00:00:00Z", {"created_at": "1792-06-01T00:00:00+00:00"}),
        (4_000_000_000_000, {"created_at": "2096-10-02T07:06:40+00:00"}),
        ("by @alice, yesterday", {}),
    ],
)
def test_a_time_that_is_not_believed_is_stated_beside_the_report_unless_it_may_be_a_name(
    stated: object, meta: dict[str, str]
) -> None:
    report = intake().take(replace(POST, created_at=stated))
    assert report is not None
    assert (report.created_at, report.created_at_assumed_utc, report.meta) == (None, False, meta)
    assert read_report(as_input(report)) == report


def test_without_a_key_there_is_no_author_and_during_a_rotation_both_keys_are_known() -> None:
    without = intake(author_key="")
    report = without.take(POST)
    assert report is not None and report.author is None
    assert (without.author_hash("alice"), without.author_hashes("alice")) == (None, frozenset())
    old, both = intake(author_key=OLD), intake(author_key_old=OLD)
    assert both.author_hash("alice") != old.author_hash("alice")
    assert both.author_hashes("alice") == {both.author_hash("alice"), old.author_hash("alice")}
    assert KEY not in repr(AuthorKeys(KEY.encode()))


def test_what_a_source_forbids_or_a_record_may_not_hold_is_left_out() -> None:
    report = intake().take(replace(POST, aggregate_only=True))
    assert report is not None and report.aggregate_only
    assert (report.author, report.permalink) == (None, None)
    report = intake().take(replace(POST, language="en-" + "x" * 99, country="", permalink="a\nb"))
    assert report is not None
    assert (report.language, report.country, report.permalink) == (None, None, None)


def test_copies_name_the_first_and_a_deleted_one_is_no_first_any_more() -> None:
    taken = intake()
    copies = [replace(POST, id="2", text="RT @x: " + POST.text), replace(POST, id="3", repost_of="at://1")]
    assert [getattr(taken.take(p), "duplicate_of", "") for p in (POST, *copies)] == [None, "at://1", "at://1"]
    taken.forget("at://1")
    assert getattr(taken.take(replace(POST, id="4")), "duplicate_of", "") is None


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({"text": "nothing to see"}, "no_term"),
        ({"language": "de"}, "language"),
        ({"text": " "}, "malformed"),
        ({"id": ""}, "malformed"),
        ({"id": "a\nb"}, "malformed"),
        ({"text": "zoloft " + "x" * MAX_TEXT}, "malformed"),
        ({"text": "zoloft " + "@a " * 1001}, "malformed"),
        ({"text": "zoloft \ud83d"}, "malformed"),
    ],
)
def test_what_is_left_out_is_counted(changed: dict[str, str], outcome: str) -> None:
    taken, before = intake(), passed(outcome)
    assert taken.take(replace(POST, **changed)) is None  # type: ignore[arg-type]
    assert passed(outcome) == before + 1


def test_a_review_passes_by_the_drug_that_its_source_states() -> None:
    review = replace(POST, text="not a wink for a week", drugs=("Zoloft 50 mg",), indication="low mood")
    report = intake().take(review)
    assert report is not None and (report.drug, report.indication) == ("Zoloft 50 mg", "low mood")
    assert read_report(as_input(report)) == report
    several = intake().take(replace(review, drugs=("Zoloft", "Wellbutrin")))
    assert several is not None and several.drug == ("Zoloft", "Wellbutrin")
    assert intake().take(replace(review, drugs=("Vitamin Quux",))) is None


@pytest.mark.parametrize("drug", ["@alice zoloft", "zoloft mail me at a@b.example", " ", "x" * 257])
def test_a_stated_drug_that_may_hold_a_person_is_left_out(drug: str) -> None:
    report = intake().take(replace(POST, drugs=(drug, "Zoloft"), indication=drug))
    assert report is not None and (report.drug, report.indication) == ("Zoloft", None)


def test_everything_passes_where_that_is_asked_for() -> None:
    everything = PostIntake.of(Settings(duplicate_reports=1000), everything=True)
    assert everything.take(replace(POST, text="nichts", language="de")) is not None


def test_the_phone_numbers_of_the_posts_country_are_masked() -> None:
    report = intake().take(replace(POST, text="zoloft? 030 901820", country="DE"))
    assert report is not None and report.text == "zoloft? [phone]"
