"""The gold events and the kinds of posts, and what counts as right in a post, by hand."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.drugs import DrugLexicon
from models.types import ADE, DRUG, TASKS, Mention
from streams.rollout.scoring import code_posts
from tests.training.fakes import TERMS, Coder, Fake
from training.common.codings.split import pts_by_term
from training.evaluation.evaluate import SPLITS
from training.evaluation.posts import corpus
from training.evaluation.posts.corpus import Corpus, GoldEvent, GoldPost
from training.evaluation.posts.counts import NAMES, counts_of, measures_of, pairs, posts_of
from training.evaluation.posts.found import FoundEvent, PostModels, unflagged
from training.evaluation.posts.measure import measure
from training.evaluation.result import Result
from training.teaching import batches
from training.teaching.markup import parse

X, Y, SERTRALINE = frozenset({"x", "xol"}), frozenset({"y"}), frozenset({"sertraline"})


def event(start: int, end: int, pt: str | None = None, *drugs: str) -> FoundEvent:
    return FoundEvent(start, end, pt, drugs)


def counted(post: GoldPost, *found: FoundEvent) -> dict[str, float]:
    (row,) = counts_of(Corpus("d", [post]), [found], pts_by_term(TERMS))
    return {name: value for name, value in zip(NAMES, row.tolist(), strict=True) if value}


def test_an_event_is_right_where_its_preferred_term_is_the_gold_one() -> None:
    post = GoldPost(
        "t", (GoldEvent(0, 5, ("Throwing up",), (X,)), GoldEvent(9, 12, ("Rash",))), "several_events"
    )
    found = counted(post, event(4, 8, "Vomiting", "xol"), event(20, 22, "Rash"), event(30, 31, None))
    coded = {"coded_right": 2, "coded_found": 2, "coded_gold": 2}
    assert found == {
        **coded,
        **{f"several_events:{name}": n for name, n in coded.items()},
        # By spans only the first is right.
        **{"event_right": 1, "event_found": 3, "event_gold": 2},
        **{"known_term": 1, "right_term": 1, "known_drug": 1, "right_drug": 1},
        **{"own": 1, "own_hit": 1},
    }


def test_events_without_a_known_gold_term_are_left_out_of_the_codes_and_unknown_names_are_misses() -> None:
    post = GoldPost("t", (GoldEvent(0, 5), GoldEvent(9, 12, ("No such term",))), "several_events")
    found = counted(post, event(0, 2, "Rash"), event(10, 12, "Insomnia"))
    assert (found["coded_found"], found["coded_gold"], found.get("coded_right", 0)) == (1, 1, 0)
    assert (found["event_right"], found["known_term"], found.get("right_term", 0)) == (2, 1, 0)


def test_a_repeated_event_counts_once_by_its_term_and_each_time_by_its_span() -> None:
    post = GoldPost("t", (GoldEvent(0, 5, ("Rash",)),), "one_event", weight=0.5)
    found = counted(post, event(0, 2, "Rash"), event(3, 5, "Rash"))
    assert (found["coded_right"], found["coded_found"], found["coded_gold"]) == (0.5, 0.5, 0.5)
    assert (found["event_right"], found["event_found"], found["event_gold"]) == (1, 2, 1)


def test_as_many_events_as_possible_are_paired_and_nil_events_alarm() -> None:
    assert counted(GoldPost("t", (), "idiom"), event(0, 2)) == {
        "event_found": 1, "other": 1, "other_alarmed": 1, "idiom:other": 1, "idiom:other_alarmed": 1,
    }  # fmt: skip
    gold = [GoldEvent(0, 10), GoldEvent(12, 20)]
    assert len(pairs(gold, [event(0, 3), event(5, 14)])) == 2
    assert len(pairs(gold, [event(0, 3), event(5, 9)])) == 1
    assert pairs(gold, [event(10, 12)]) == []


@pytest.mark.parametrize(
    ("named", "right"),
    [(("xol", "y"), 1), (("x",), 0), ((), 0), (("x", "y", "z"), 0), (("x", "xol", "y"), 1)],
)
def test_the_suspected_drugs_must_be_those_of_the_gold_event(named: tuple[str, ...], right: int) -> None:
    post = GoldPost("t", (GoldEvent(0, 5, (), (X, Y)),), "one_event")
    assert counted(post, event(0, 5, None, *named)).get("right_drug", 0) == right


POSTS = [
    GoldPost(
        "zoloft gave me hives", (GoldEvent(15, 20, ("Rash",), (frozenset({"sertraline"}),)),), "one_event"
    ),
    GoldPost("no hives on zoloft", (), "negated"),
    GoldPost("insomnia is my middle name", (), "idiom"),
    GoldPost("on zoloft because of insomnia", (), "indication"),
]


def tagger() -> Any:
    def tag(text: str) -> list[Mention]:
        found = [("hives", ADE, None), ("zoloft", DRUG, "sertraline")]
        return sorted(
            (
                Mention(text.index(w), text.index(w) + len(w), w, label, 0.9, generic)
                for w, label, generic in found
                if w in text
            ),
            key=lambda m: m.start,
        )

    return Fake(tag)


def scores(result: Result, baseline: bool = False) -> dict[str, float]:
    return {m.name: m.of(result.baseline if baseline else result.counts) for m in result.measures}


def test_posts_go_through_the_stages_and_are_compared_with_a_method_without_a_model() -> None:
    known = Coder({"hives": ["Rash"]})
    coder: Any = Fake(lambda query: replace(known.predict([query])[0], nil=False))
    coder.terms = TERMS
    models = PostModels(tagger(), coder, code_posts)
    corpus = Corpus("d", POSTS)
    result = measure(models, corpus)
    ours, named = scores(result), scores(result, baseline=True)
    # The rule finds the negation.
    assert (ours["coded_f1"], ours["event_f1"], ours["false_posts"], ours["hit_posts"]) == (1, 1, 0, 1)
    assert (ours["right_code"], ours["right_drug"]) == (1, 1)
    # The names of the terminology are no hives, but the insomnia of two posts without an event.
    assert (named["coded_f1"], named["hit_posts"]) == (0, 0)
    assert named["false_posts"] == pytest.approx(2 / 3)
    assert (named["false_posts_idiom"], named["false_posts_negated"]) == (1, 0)
    assert result.parts["false_posts"].records == 3
    assert result.parts["false_posts_idiom"].records == result.parts["hit_posts"].records == 1
    assert result.parts["coded_f1_one_event"].records == 1


def test_flagged_events_are_left_out() -> None:
    texts = ["zoloft, never any rash", "zoloft didn\u2019t give me a rash", "zoloft and a rash", "a rash"]
    named = (
        PostModels(None, Coder({}), code_posts)
        .dictionary()
        .predict([GoldPost(t, (), "plain") for t in texts])
    )
    assert [len(unflagged(r)) for r in named] == [0, 0, 1, 1]
    (found,) = unflagged(named[2])
    assert (texts[2][found.start : found.end], found.pt, found.drugs) == ("rash", "Rash", ("sertraline",))


def test_the_medicine_of_a_review_is_handed_to_the_stages() -> None:
    codings: dict[str, list[str]] = {"hives": ["Rash"]}
    coder: Any = Fake(lambda query: Coder(codings).predict([query])[0])
    coder.terms = TERMS
    review = GoldPost("such hives", (GoldEvent(5, 10, ("Rash",), (X,)),), "one_event", drug="X")
    by_drug = [review, replace(review, drug=None)]
    result = measure(PostModels(tagger(), coder, code_posts), Corpus("d", by_drug))
    assert scores(result)["right_drug"] == 0.5
    assert scores(result)["event_recall"] == 1


def test_the_scores_count_over_the_posts_that_they_are_about() -> None:
    corpus = Corpus("d", POSTS)
    assert {"right_drug", "right_code"} <= {m.name for m in measures_of(corpus)}
    assert posts_of("coded_f1", corpus) == 4
    assert posts_of("event_f1", corpus) is None
    unknown = replace(POSTS[0], weight=0.0)
    weighted = Corpus("d", [unknown, *POSTS[1:]])
    assert posts_of("coded_f1", weighted) == 3


ROOT = Path(__file__).parents[3]


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
