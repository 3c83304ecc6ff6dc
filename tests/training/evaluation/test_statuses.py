"""Flags of effects: what is affirmed and what is flagged of each kind, by hand and on PHEE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from models.types import ADE, DRUG, Mention
from tests.small_corpora import public_corpora
from tests.training.fakes import Fake, tagger
from training.evaluation import statuses
from training.evaluation.evaluate import EvaluationError, evaluate


def argument(text: str, *words: str) -> dict[str, Any]:
    return {"text": [list(words)], "start": [[text.index(w) for w in words]]}


def row(text: str, kind: str = "Adverse_event", **arguments: Any) -> dict[str, Any]:
    return {"id": text, "context": text, "annotations": [{"events": [{"event_type": kind} | arguments]}]}


def rows() -> list[dict[str, Any]]:
    plain = "Zoloft caused painful red rash ."
    denied = "There was no nausea after Zoloft for gout ."
    speculated = "Zoloft may cause tics ."
    treated = "Zoloft ended her insomnia and gave relief ."
    return [
        row(plain, Effect=argument(plain, "painful", "rash")),
        row(
            denied,
            Effect=argument(denied, "nausea"),
            Treatment={"Disorder": argument(denied, "gout")},
            Negated={"value": True},
        ),
        row(speculated, Effect=argument(speculated, "tics"), Speculated={"value": True}),
        row(
            treated,
            "Potential_therapeutic_event",
            Effect=argument(treated, "relief"),
            Treatment={"Disorder": argument(treated, "insomnia")},
        ),
    ]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "phee").mkdir()
    lines = "".join(f"{json.dumps(r)}\n" for r in rows())
    (tmp_path / "phee/dev.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def test_what_is_affirmed_and_what_is_flagged_is_counted_by_kind(corpus: Path) -> None:
    labels = dict.fromkeys(("rash", "nausea", "gout", "tics", "insomnia"), ADE)
    found = evaluate("ner", tagger(Zoloft=DRUG, **labels), "v1", corpus, "phee_dev")
    assert (found.data, found.split, found.records) == ("PHEE dev", "phee_dev", 4)
    affirmed = {"plain": 1, "speculated": 0, "negated": 0, "therapeutic": 0, "treated": 0.5}
    # "no nausea after Zoloft for gout" denies the gout too, "may cause" leaves the tics open.
    flagged = {"plain": 0, "speculated": 1, "negated": 1, "therapeutic": 0, "treated": 0.5}
    assert found.scores == {f"{kind}_affirmed": share for kind, share in affirmed.items()} | {
        f"{kind}_flagged": share for kind, share in flagged.items()
    }
    # The terminology knows all but the relief.
    named = {"plain": 1, "speculated": 1, "negated": 1, "therapeutic": 0, "treated": 1}
    assert {kind: found.baselines[f"{kind}_affirmed"] for kind in named} == named
    assert not any(found.baselines[f"{kind}_flagged"] for kind in named)


def test_a_row_of_another_form_is_one_clear_line(corpus: Path) -> None:
    (corpus / "phee/dev.jsonl").write_text('{"context": "no annotations"}\n', encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"dev\.jsonl is not in the form of its corpus: KeyError"):
        evaluate("ner", Fake(str), "v1", corpus, "phee_dev")


def test_of_the_marked_effects_of_phee_few_that_happened_are_flagged() -> None:
    data = public_corpora("phee/dev.jsonl")
    marked = {r.text: r.marked for r in statuses.read(data, "phee_dev", 0).records}

    def gold(text: str) -> list[Mention]:
        spans = [(start, end) for pieces, _ in marked[text] for start, end in pieces]
        return [Mention(*s, text[slice(*s)], ADE, 1.0) for s in spans]

    found = evaluate("ner", Fake(gold), "v1", data, "phee_dev")
    assert found.records == 961
    assert found.scores["plain_flagged"] < 0.05
    assert found.scores["speculated_flagged"] > 0.25
    assert found.scores["negated_flagged"] > 0.3
