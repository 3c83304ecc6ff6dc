"""What counts as right in a post, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from models.types import ADE, DRUG, Mention
from streams.rollout.scoring import code_posts
from tests.training.fakes import TERMS, Coder, Fake
from training.common.codings.split import pts_by_term
from training.evaluation.posts.corpus import Corpus, GoldEvent, GoldPost
from training.evaluation.posts.counts import NAMES, counts_of, keyword_measures, measures_of, pairs, posts_of
from training.evaluation.posts.found import FoundEvent, PostModels, keyword, unflagged
from training.evaluation.posts.measure import measure
from training.evaluation.result import Result

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


def test_a_post_without_an_event_is_alarmed_by_a_nil_event_too() -> None:
    assert counted(GoldPost("t", (), "idiom"), event(0, 2)) == {
        "event_found": 1, "other": 1, "other_alarmed": 1, "idiom:other": 1, "idiom:other_alarmed": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("named", "right"),
    [(("xol", "y"), 1), (("x",), 0), ((), 0), (("x", "y", "z"), 0), (("x", "xol", "y"), 1)],
)
def test_the_suspected_drugs_must_be_those_of_the_gold_event(named: tuple[str, ...], right: int) -> None:
    post = GoldPost("t", (GoldEvent(0, 5, (), (X, Y)),), "one_event")
    assert counted(post, event(0, 5, None, *named)).get("right_drug", 0) == right


def test_as_many_events_as_possible_are_paired() -> None:
    gold = [GoldEvent(0, 10), GoldEvent(12, 20)]
    assert len(pairs(gold, [event(0, 3), event(5, 14)])) == 2
    assert len(pairs(gold, [event(0, 3), event(5, 9)])) == 1
    assert pairs(gold, [event(10, 12)]) == []


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


def test_posts_go_through_the_stages_and_are_compared_with_two_methods_without_a_model() -> None:
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
    # Without a drug the second method takes none, and it knows no reason for taking one.
    assert ours["keyword_false_posts"] == named["keyword_false_posts"] == pytest.approx(1 / 3)
    assert result.parts["false_posts"].records == 3
    assert result.parts["false_posts_idiom"].records == result.parts["hit_posts"].records == 1
    assert result.parts["coded_f1_one_event"].records == 1


def test_flags_are_left_out_and_the_keyword_method_has_its_own_rule() -> None:
    texts = ["zoloft, never any rash", "zoloft didn\u2019t give me a rash", "zoloft and a rash", "a rash"]
    named = (
        PostModels(None, Coder({}), code_posts)
        .dictionary()
        .predict([GoldPost(t, (), "plain") for t in texts])
    )
    assert [len(unflagged(r)) for r in named] == [0, 0, 1, 1]
    assert [len(keyword(r)) for r in named] == [0, 0, 1, 0]
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
    assert posts_of("event_f1", corpus) is posts_of("keyword_event_f1", corpus) is None
    unknown = replace(POSTS[0], weight=0.0)
    weighted = Corpus("d", [unknown, *POSTS[1:]])
    for name in ("coded_f1", "keyword_coded_f1"):
        assert posts_of(name, weighted) == 3
    assert all(m.definition.startswith("another baseline, ") for m in keyword_measures())
