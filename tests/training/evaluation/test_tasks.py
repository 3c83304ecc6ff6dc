"""What each task counts, by hand on tiny corpora and models that answer what they are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from models.terminology import Term
from models.types import ADE, DRUG, SYMPTOM, Candidate, Coding, Query, ShortQuestion
from tests.training.fakes import TERMS, Coder, Fake, Relator, tagger
from training.common import bundled_tagger
from training.common.corpora import GoldCoding, read_ade_abstracts, read_negative_abstracts, read_psytar_codes
from training.evaluation import relation
from training.evaluation.coding import end_to_end
from training.evaluation.evaluate import as_scores, compare, evaluate
from training.evaluation.summarization.measure import first_sentence, summary_counts


def test_tagging_is_scored_over_the_labels_of_the_corpus(data: Path) -> None:
    # Right: zaps. Wrong: sleep (gold is "no sleep"), "mood" as another label. Not annotated: the drug.
    found = evaluate("ner", tagger(sleep=ADE, mood=ADE, zaps="WITHDRAWAL", my=DRUG), "v1", data)
    assert (found.task, found.release, found.split, found.records) == ("ner", "v1", "psytar_test", 2)
    assert found.data == "PsyTAR test"
    # 1 of 3 predicted and 3 gold; the F1 of WITHDRAWAL is 1 and that of the other three is 0.
    assert found.scores == pytest.approx(
        {"strict_micro_f1": 1 / 3, "strict_macro_f1": 0.25, "ade_strict_micro_f1": 0.0}
    )
    # The training sentence with zaps is a test sentence and does not count: 2 of 2 predicted and 3 gold.
    assert found.baselines == pytest.approx(
        {"strict_micro_f1": 0.8, "strict_macro_f1": 0.5, "ade_strict_micro_f1": 1.0}
    )
    assert "ADE, INDICATION, WITHDRAWAL, SYMPTOM" in found.definitions["strict_micro_f1"]
    assert all(found.definitions.values())


def test_a_fold_is_scored_over_drugs_and_effects(data: Path) -> None:
    found = evaluate("ner", tagger(Zoloft=DRUG, pain=SYMPTOM), "v1", data, "ade_fold_1", limit=2)
    # Two sentences: Zoloft is found, Aspirin and both effects are not; SYMPTOM is not annotated.
    assert (found.data, found.records) == ("ADE corpus fold 1 test", 2)
    assert found.scores["strict_micro_f1"] == pytest.approx(0.4)
    assert found.scores["strict_macro_f1"] == pytest.approx(1 / 3)


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the bundled tagger find these words."""

    def finds(**labels: str) -> None:
        monkeypatch.setattr(bundled_tagger, "bundled_tagger", lambda: tagger(**labels))

    return finds


def test_relations_are_scored_on_a_fold_and_false_ones_on_the_held_out_negatives(
    data: Path, bundled: Callable[..., None]
) -> None:
    # The fold's four sentences: each of four drugs caused rash. Another effect is found, and another label.
    bundled(Zoloft=DRUG, Aspirin=DRUG, rash=ADE, day=ADE, four=SYMPTOM)
    found = evaluate("relation", Relator(), "v1", data)
    _, negatives = relation.split_negatives(data / "ade", "ade_fold_1")
    assert found.split == "ade_fold_1"
    assert found.records == 4 + len(negatives)
    # DRUG: 2 of 2 predicted and 4 gold. ADE: 4 of 8 predicted and 4 gold. Relations: 2 of 2 and 4 gold.
    assert found.scores["ner_strict_macro_f1"] == pytest.approx(2 / 3)
    assert found.scores["ner_strict_micro_f1"] == pytest.approx(2 / 3)
    assert found.scores["re_strict_macro_f1"] == pytest.approx(2 / 3)
    # Given the entities all are affirmed: the two whose drug is not found are false, and none is missed.
    assert found.scores["re_given_f1"] == 1.0
    assert found.scores["re_strict_f1_authors"] == pytest.approx(2 * 2 / (4 + 2))
    # Every pair: 2 of 4 predicted and 4 gold.
    assert found.baselines["re_strict_macro_f1"] == pytest.approx(0.5)
    # One relation, a pair more and one effect in each negative with a drug that is known.
    known = sum("Zoloft" in n.text or "Aspirin" in n.text for n in negatives)
    assert found.scores["false_relations_per_1000"] == 1000 * known / len(negatives)
    assert found.scores["false_effects_per_1000"] == 1000.0
    # In the corpus' proportion the fold's four sentences stand beside 15.6 without an event.
    false = 4 * 16695 / 4272 * known / len(negatives)
    assert known > 0
    assert found.scores["re_corpus_f1"] == pytest.approx(2 * 2 / (2 + false + 4))
    rows = {s.name: (s.data, s.records) for s in as_scores(found)}
    assert rows["re_strict_macro_f1"] == ("ADE corpus fold 1 test", 4)
    assert rows["false_relations_per_1000"] == (relation.NEGATIVES, len(negatives))
    assert rows["re_corpus_f1"][1] == 4 + len(negatives)


ONE, OTHER, THIRD = ((0, 2), (5, 9)), ((0, 2), (12, 15)), ((3, 4), (5, 9))


@pytest.mark.parametrize(
    ("found", "given", "triple"),
    [
        ({ONE}, {ONE, OTHER}, (1, 2, 1)),  # OTHER is affirmed but not found: false, not missed
        ({ONE}, {ONE}, (1, 1, 2)),  # OTHER is denied: missed
        ({((1, 2), (5, 9))}, {ONE, OTHER}, (0, 2, 0)),  # the right words of a wrong mention count once
        ({ONE, THIRD}, {ONE, OTHER, THIRD}, (1, 3, 1)),  # THIRD is no gold relation
        (set(), set(), (0, 0, 2)),
    ],
)
def test_the_authors_count_a_wrong_mention_as_a_false_relation_and_never_as_a_missed_one(
    found: relation.Linked, given: relation.Linked, triple: tuple[int, int, int]
) -> None:
    assert relation.authors_triple(found, given, {ONE, OTHER}) == triple


def test_a_relation_of_other_labels_is_wrong(data: Path, bundled: Callable[..., None]) -> None:
    bundled(Zoloft=ADE, Aspirin=ADE, Clozapine=ADE, Ibuprofen=ADE, rash=DRUG)
    corpus = relation.read(data, "ade_fold_1", 0)._replace(negatives=[])
    measured = relation.measure(Relator(), corpus)
    scores = {m.name: m.of(measured.counts) for m in measured.measures}
    assert scores["re_strict_macro_f1"] == scores["ner_strict_micro_f1"] == 0.0


def test_negatives_are_held_out_by_abstract_and_none_of_a_tested_abstract_is_trained_on(data: Path) -> None:
    rest, held = relation.split_negatives(data / "ade", "ade_fold_1")
    assert relation.split_negatives(data / "ade", "ade_fold_1") == (rest, held)
    # Two negatives to an abstract, one of five abstracts held out; two hold the fold's test sentences.
    assert [int(t.id[4:]) // 2 for t in held[::2]] == [int(t.id[4:]) // 2 for t in held[1::2]]
    assert len(held) == 2
    abstracts = read_negative_abstracts(data / "ade/negatives.txt")
    assert not {abstracts[int(t.id[4:])] for t in rest} & {"108", "109"}
    assert not {t.id for t in rest} & {t.id for t in held}


def test_a_group_shares_no_abstract_with_the_others(data: Path) -> None:
    abstract = read_ade_abstracts(data / "ade")
    tested = []
    for number in range(1, 11):
        train, test = relation.split_texts(data / "ade", f"ade_group_{number}")
        assert not {abstract[t.id] for t in train} & {abstract[t.id] for t in test}
        assert len(train) + len(test) == 20
        tested += [t.id for t in test]
        _, held = relation.split_negatives(data / "ade", f"ade_group_{number}")
        own = read_negative_abstracts(data / "ade/negatives.txt")
        assert not {own[int(t.id[4:])] for t in held} & {abstract[t.id] for t in train}
    assert sorted(tested) == sorted(abstract)


def test_coding_is_scored_over_all_mentions_and_over_those_with_a_known_term(data: Path) -> None:
    coder = Coder({"Rash": ["Rash"], "throwing up": ["Rash", "Insomnia", "Vomiting"], "odd": ["Rash"]})
    # "Vomiting" is no lowest-level term here, so throwing up has no known gold term.
    found = evaluate("normalization", coder, "v1", data, "all")
    assert found.records == 4
    shares = {"acc@1": 0.25, "acc@5": 0.25, "acc@10": 0.25, "acc@1_known": 0.5, "acc@5_known": 0.5}
    # The held-out drug has the only insomnia; a mention of the others is a right term itself.
    parts = {"acc@1_seen": 1.0, "acc@1_unseen": 0.0}
    # No mention was coded with its sentence, so there is no weight of one.
    rest = {"exact": 0.25, "known": 0.5}
    # All have the same score: of the two with a known term the first is right, the second is not coded.
    curve = {f"acc@1_at_{c}": at for c, at in ((50, 1), (60, 1), (70, 1), (80, 0.5), (90, 0.5))}
    assert found.scores == pytest.approx(shares | parts | rest | curve)
    assert found.baselines == pytest.approx(shares | parts | curve)
    rows = {s.name: s.records for s in as_scores(found)}
    assert (rows["acc@1"], rows["acc@1_seen"], rows["acc@1_unseen"], rows["acc@1_known"]) == (4, 1, 1, 2)
    more = Coder({"throwing up": ["Rash", "Vomiting"]}, [*TERMS, Term("Vomiting", "Vomiting", "G")])
    found = evaluate("normalization", more, "v2", data, "all")
    assert (found.scores["acc@1"], found.scores["acc@5"], found.scores["known"]) == (0.0, 0.25, 0.75)
    # no sleep is no term; Rash and throwing up are.
    assert found.scores["exact"] == 0.5


def test_the_default_is_held_out_and_two_terminologies_are_compared_on_all(data: Path) -> None:
    found = evaluate("normalization", Coder({"No sleep": ["Insomnia"]}), "v1", data)
    assert (found.split, found.records) == ("heldout", 1)
    assert (found.scores["acc@1"], found.scores["acc@1_unseen"], found.scores["exact"]) == (1.0, 1.0, 0.0)
    small = Coder({"Rash": ["Rash"]}, TERMS[1:2])
    large = Coder({"Rash": ["Rash"], "No sleep": ["Insomnia"]})
    compared = compare(
        evaluate("normalization", large, "v2", data, "all"),
        evaluate("normalization", small, "v1", data, "all"),
    )
    assert (compared.score, compared.candidate, compared.live, compared.records) == ("acc@1", 0.5, 0.25, 4)


def test_a_query_has_the_sentence_and_the_weight_of_the_context_is_averaged(data: Path) -> None:
    asked: list[Query] = []
    coder = Coder({})
    coder.answer = lambda query: asked.append(query) or Coding((), nil=True)  # type: ignore[func-returns-value]
    evaluate("normalization", coder, "v1", data, "all", limit=1)
    assert asked == [Query("No sleep.", 0, 8, "No sleep"), Query("No sleep", 0, 8, "No sleep")]
    weighing = Coder({})
    weighing.answer = lambda query: Coding((), True, {"Rash": 0.2, "odd": 0.6}.get(query.surface))
    assert evaluate("normalization", weighing, "v1", data, "all").scores["context_weight"] == pytest.approx(
        0.4
    )


def sentence(text: str, *golds: str) -> end_to_end.Sentence:
    return end_to_end.Sentence(text, tuple(GoldCoding("m", text, "a", (name,)) for name in golds))


def test_sentences_are_scored_by_the_preferred_terms_that_are_found_in_them() -> None:
    sentences = [
        sentence("Rash and rash again, no sleep", "Rash", "Insomnia", "insomnia"),
        sentence("A rash", "Unknown term"),
        sentence("nothing", "Rash"),
    ]
    coder = Coder({})
    # No sleep is coded, but NIL.
    nil = {"Rash": False, "rash": False, "sleep": True}
    coder.answer = lambda q: Coding((Candidate("Rash", "Rash", "-", 0.5),), nil[q.surface])
    tagged = tagger(Rash=ADE, rash=ADE, sleep=ADE, again=SYMPTOM)
    found = end_to_end.measure(coder, "", sentences, tagged)
    # Right: rash of the first. Gold: two terms of the first, one of each other.
    assert found.counts.tolist() == [[1, 1, 2], [0, 1, 1], [0, 0, 1]]
    scores = {m.name: m.of(found.counts) for m in found.measures}
    assert scores == pytest.approx({"f1": 2 / 6, "precision": 1 / 2, "recall": 1 / 4})
    assert found.baseline.tolist() == found.counts.tolist()


def test_end_to_end_wants_whole_sentences_that_the_tagger_never_saw(data: Path, tmp_path: Path) -> None:
    (tmp_path / "psytar").mkdir()
    (tmp_path / "psytar/ner_train.conll").write_text("Seen\tO\n!\tO\n", encoding="utf-8")
    (tmp_path / "psytar/normalization.csv").write_text(
        "type,drug_id,mention,sentence,sider_meddra_terms\n"
        "ADR,a.1,rash,rash here,Rash\nADR,a.1,odd,odd and rash,\nADR,a.1,rash,odd and rash,Rash\n"
        "ADR,a.1,seen,seen !,Rash\nSSI,a.1,here,rash here,\n",
        encoding="utf-8",
    )
    test = list(read_psytar_codes(tmp_path / "psytar/normalization.csv"))
    assert [s.text for s in end_to_end.read(tmp_path, test)] == ["rash here"]


def test_summaries_are_scored_by_rouge_and_length(data: Path) -> None:
    pytest.importorskip("rouge_score")
    model = Fake(lambda text: ShortQuestion(text.split(". ")[-1], "extractive", 0.5))
    found = evaluate("summarization", model, "v1", data)
    assert found.records == 2
    # "Is tea fine?" is right; "Can it hurt? I fear so." has 3 of 6 words right and all 3 that are wanted.
    assert found.scores["rouge1"] == pytest.approx((100 + 100 * 2 / 3) / 2)
    assert found.scores["mean_words"] == (3 + 6) / 2
    # "I take tea." shares 1 of 3 words, "Can it hurt?" all.
    assert found.baselines["rouge1"] == pytest.approx((100 / 3 + 100) / 2)


def test_rouge_is_hundred_for_equal_texts_and_zero_for_strange_ones() -> None:
    pytest.importorskip("rouge_score")
    equal, strange, empty = summary_counts(["can tea hurt", "one two", ""], ["can tea hurt", "x", "x"])
    assert equal.tolist() == pytest.approx([100, 100, 100, 3, 1])
    assert strange.tolist() == [0, 0, 0, 2, 1]
    assert empty.tolist() == [0, 0, 0, 0, 1]
    assert first_sentence(" One. Two.") == "One."
    assert first_sentence(" \n") == ""
