"""The gold events and the kinds of posts, from the markup and from PsyTAR's annotations."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest

from models.drugs import DrugLexicon
from models.types import TASKS
from training.evaluation.evaluate import SPLITS
from training.evaluation.posts import corpus
from training.evaluation.posts.corpus import GoldEvent, GoldPost
from training.teaching import batches
from training.teaching.markup import parse

ROOT = Path(__file__).parents[4]


def post(line: str) -> GoldPost:
    return corpus._marked_post(parse(line), DrugLexicon({"Zoloft": "sertraline"}))


def test_events_of_the_writer_have_their_term_and_every_name_of_their_medicines() -> None:
    found = post(
        "[DRUG#1 Zoloft] and [DRUG#2 Oddaline], [DRUG#1 zolo]: [ADE<1,2 no sleep = Insomnia], "
        "[WD<1 zaps], [ADE<1?negated rash = Rash]"
    )
    text = found.text
    zoloft, oddaline = frozenset({"zoloft", "sertraline", "zolo"}), frozenset({"oddaline"})
    sleep, zaps = text.index("no sleep"), text.index("zaps")
    assert found.events == (
        GoldEvent(sleep, sleep + 8, ("Insomnia",), (zoloft, oddaline)),
        GoldEvent(zaps, zaps + 4, (), (zoloft,)),
    )
    assert (found.kind, found.weight) == ("mixed", 1.0)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[DRUG#1 x] gave me [ADE<1 hives]", "one_event"),
        ("[DRUG#1 x]: [ADE<1 hives] and [WD<1 zaps]", "several_events"),
        ("[DRUG#1 x] for [IND<1 gout], now [ADE<1 hives]", "mixed"),
        (
            "[DRUG#1 x] for [IND<1 gout] gave my cat [ADE<1?other hives], me [ADE<1?negated none]",
            "other_person",
        ),
        ("[DRUG#1 x] may cause [ADE<1?hypothetical hives], never [ADE<1?negated zaps]", "hypothetical"),
        ("[DRUG#1 x] for [IND<1 gout], no [ADE<1?negated hives]", "negated"),
        ("had [ADE<1?past hives] long before [DRUG#1 x]", "past"),
        ("[DRUG#1 x] took the [IND<1?relieved pain] away, good for [IND<1 gout]", "relief"),
        ("[DRUG#1 x] for [IND<1 gout] is a [NONE headache] to get", "indication"),
        ("[DRUG#1 x] is a [NONE headache] to get", "idiom"),
        ("[DRUG#1 x] costs a lot", "plain"),
    ],
)
def test_the_kind_of_a_post_is_read_from_its_marks(line: str, kind: str) -> None:
    assert post(line).kind == kind


def test_the_held_out_posts_are_all_package_data() -> None:
    held_out = {
        f"data/teaching/posts/{path.name}"
        for path in (batches.FOLDER / "posts").glob("*.txt")
        if batches.held_out(path.name)
    }
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packaged = settings["tool"]["setuptools"]["package-data"]["training"]
    posts = {name for name in packaged if name.startswith("data/teaching/")}
    assert posts == held_out, "name the held-out posts in package-data: the gate compares on them"


def test_the_held_out_posts_have_every_kind_but_one() -> None:
    found = corpus.teaching()
    # PsyTAR alone annotates other symptoms of the patient.
    assert {p.kind for p in found.records} == {*corpus.OWN_KINDS, *corpus.OTHER_KINDS} - {"symptom"}
    assert all(bool(p.events) == (p.kind in corpus.OWN_KINDS) for p in found.records)
    assert corpus.teaching(5).records == found.records[:5]
    assert SPLITS["posts"] == ("teaching", "psytar_test")
    assert "posts" not in TASKS


CODES = [
    # sentence, mention, terms; drugs a and b of which one is held out as a whole
    ("a.1", "No sleep .", "No sleep", "Insomnia"),
    ("b.1", "Rash .", "Rash", "Rash"),
    ("a.2", "Odd and rash .", "Odd", ""),
]
CONLL = """No B-ADR
sleep I-ADR
. O

Rash B-ADR
. O

Odd B-ADR
and O
rash B-ADR
. O

For O
gout B-DI
. O

Known O
"""


def test_of_psytar_only_effects_that_no_release_was_trained_on_count_as_coded(tmp_path: Path) -> None:
    (tmp_path / "psytar").mkdir()
    (tmp_path / "psytar/ner_train.conll").write_text("Known\tO\n", encoding="utf-8")
    (tmp_path / "psytar/ner_test.conll").write_text(CONLL.replace(" ", "\t"), encoding="utf-8")
    with (tmp_path / "psytar/normalization.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["drug_id", "sentence", "mention", "sider_meddra_terms"])
        rows.writerows(CODES)
    found = corpus.psytar(tmp_path)
    assert [p.text for p in found.records] == ["No sleep .", "Rash .", "Odd and rash .", "For gout ."]
    assert [p.drug for p in found.records] == ["a", "b", "a", None]
    assert [e.drugs for p in found.records[1:3] for e in p.events] == [(frozenset({"b"}),)] + 2 * [
        (frozenset({"a"}),)
    ]
    first, second, third, fourth = found.records
    # One of the two drugs is held out; the third sentence has an effect without a known name.
    assert sorted((first.weight, second.weight)) == [0.0, 1.0]
    assert third.weight == 0.0
    held_out = first if first.weight else second
    assert held_out.events[0].terms == (("Insomnia",) if first.weight else ("Rash",))
    # One of three sentences with an effect counts, so one without counts for a third.
    assert fourth.kind == "indication"
    assert fourth.weight == pytest.approx(1 / 3)
