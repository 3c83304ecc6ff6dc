"""What speaks for a long form: cue words and how frequent it is."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from models.acronym import frequencies
from models.acronym.cues import CLINICAL, FAR, MIDDLE, NEAR, PHRASE, CueWords
from models.acronym.frequencies import UNRATED, WEIGHTS, SenseFrequencies
from models.acronym.model import AcronymModel
from models.acronym.questions import Question, undotted
from models.acronym.tables import TableScorer, Weights
from models.releases.store import bundled, open_release

CUES = {
    ("CTA", "CT angiography"): ["chest", "head and neck", "PE", "lung field"],
    ("CTA", "clear to auscultation"): ["lungs", "chest"],
    ("PE", "pulmonary embolism"): ["DVT"],
}
FORMS = ("CT angiography", "clear to auscultation", "cuff tear arthropathy")


@pytest.fixture
def cues() -> CueWords:
    return CueWords(CUES)


def test_cues_count_by_nearness_and_share_whatever_their_spelling(cues: CueWords) -> None:
    assert cues.scores("", "CTA", " for PE", FORMS) == [NEAR[1], 0, 0]
    assert cues.scores("PE was seen two days later on ", "CTA", "", FORMS) == [MIDDLE[1], 0, 0]
    assert cues.scores("", "CTA", " a b c d e f g h PE", FORMS) == [FAR, 0, 0]
    # Twice the same cue counts once, by its nearest place.
    assert cues.scores("PE: ", "CTA", " a b c d e f g h PE", FORMS) == [NEAR[1], 0, 0]
    assert cues.scores("", "CTA", " chest", FORMS) == [0.5, 0.5, 0]
    assert cues.scores("", "CTA", " of the head and neck", FORMS) == [NEAR[1] * PHRASE, 0, 0]
    assert cues.scores("lung fields, chest ", "C.T.A", "", FORMS) == [1.5 + 0.5, 1 + 0.5, 0]
    assert cues.scores("Lung is ", "CTA", "", ("clear to  Auscultation",)) == [1]
    assert cues.scores("pe ", "CTA", "", FORMS) == [0, 0, 0]
    assert cues.scores("chest ", "XYZ", "", FORMS) == [0, 0, 0]
    assert cues.scores("", "CTA", "", FORMS) == [0, 0, 0]
    assert CueWords().scores("chest ", "CTA", "", FORMS) == [0, 0, 0]


def test_a_table_is_read_as_it_was_written(cues: CueWords, tmp_path: Path) -> None:
    path = tmp_path / "cues.tsv"
    cues.write(path)
    assert CueWords.load(path).cues == CUES
    path.write_text("short_form\tlong_form\tcues\nCTA\tCT angiography\t\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: 3 filled columns"):
        CueWords.load(path)


def test_every_long_form_that_is_rated_has_cues_of_its_own() -> None:
    rated = SenseFrequencies.load(frequencies.CLINICAL).words
    cues = CueWords.load(CLINICAL).cues
    assert set(cues) == set(rated)
    assert all(len(set(own)) == len(own) >= 3 for own in cues.values())
    shared = Counter((short, cue) for (short, _), own in cues.items() for cue in own)
    assert sum(n > 1 for n in shared.values()) < 0.2 * len(shared)


@pytest.mark.parametrize(
    ("sentence", "short_form", "long_form"),
    [
        ("A CTA of the chest showed no embolus.", "CTA", "computed tomography angiography"),
        ("Lungs CTA bilaterally, no wheezes.", "CTA", "clear to auscultation"),
        ("A CT of the chest was normal.", "CT", "computed tomography"),
        ("Echo: severe MR and mild TR, EF 40 %.", "MR", "mitral regurgitation"),
        ("The infant had PE tubes for otitis media.", "PE", "pressure equalization"),
        ("DVT and PE after surgery, on heparin.", "PE", "pulmonary embolism"),
        ("BP 120/80, HR 72.", "BP", "blood pressure"),
    ],
)
def test_one_neighbouring_word_decides(sentence: str, short_form: str, long_form: str) -> None:
    model = AcronymModel.load(open_release(bundled("acronym")))
    (found,) = model.predict([sentence])
    assert [e.long_form for e in found if e.short_form == short_form] == [long_form]


WORDS = {("CT", "computed tomography"): "usual", ("CT", "chest tube"): "occasional"}


def test_shares_add_up_and_are_equal_where_nothing_is_known() -> None:
    frequencies = SenseFrequencies(WORDS)
    forms = ("chest tube", "computed tomography", "clotting time")
    total = WEIGHTS["occasional"] + WEIGHTS["usual"] + UNRATED
    expected = [WEIGHTS["occasional"] / total, WEIGHTS["usual"] / total, UNRATED / total]
    assert frequencies.shares("CT", forms) == pytest.approx(expected)
    assert frequencies.shares("C.T.", forms) == pytest.approx(expected)
    assert frequencies.shares("PE", ("a", "b")) == [0.5, 0.5]


def test_counts_of_a_corpus_count_beside_the_estimate() -> None:
    forms = ("computed tomography", "chest tube", "clotting time")
    estimated = SenseFrequencies(WORDS).shares("CT", forms)
    counts = {"a": {("CT", forms[0]): 3, ("CT", forms[1]): 1}, "b": {("RA", "right atrium"): 5}}
    # Half a row for each long form, parted as estimated; source b does not count this short form.
    expected = [(n + 1.5 * e) / 5.5 for n, e in zip((3, 1, 0), estimated, strict=True)]
    assert SenseFrequencies(WORDS, counts).shares("C.T.", forms) == pytest.approx(expected)
    both = SenseFrequencies(WORDS, counts | {"b": {("CT", "other"): 1}})
    mean = [(one + other) / 2 for one, other in zip(expected, estimated, strict=True)]
    assert both.shares("CT", forms) == pytest.approx(mean)
    assert SenseFrequencies({}, counts).shares("PE", ("a", "b")) == [0.5, 0.5]


def test_frequencies_are_read_as_they_were_written(tmp_path: Path) -> None:
    path, counted = tmp_path / "frequencies.tsv", tmp_path / "counts.tsv"
    counts = {"casi": {("CT", "computed tomography"): 3}, "ade": {("CT", "chest tube"): 1}}
    SenseFrequencies(WORDS, counts).write(path, counted)
    read = SenseFrequencies.load(path, counted)
    assert (read.words, read.counts) == (WORDS, counts)
    assert SenseFrequencies.load(path).counts == {}
    path.write_text("short_form\tlong_form\tfrequency\nCT\tchest tube\toften\n", encoding="utf-8")
    with pytest.raises(ValueError, match="'often' is none of usual, common, occasional, rare"):
        SenseFrequencies.load(path)


def test_a_score_is_the_weighted_sum_of_both_tables_and_a_share_of_the_softmax(cues: CueWords) -> None:
    words = {("CTA", FORMS[0]): "usual", ("CTA", FORMS[1]): "rare", ("CTA", FORMS[2]): "rare"}
    question = Question("Lungs ", "CTA", " bilaterally", FORMS)
    rated = SenseFrequencies(words)
    (found,) = TableScorer(rated, cues, Weights(prior=0.5, cues=2.0)).scores([question])
    logs = [0.5 * math.log(share) for share in rated.shares("CTA", FORMS)]
    logs[1] += 2.0  # "Lungs" stands beside it
    total = sum(map(math.exp, logs))
    assert found == pytest.approx([math.exp(x) / total for x in logs])
    (unknown,) = TableScorer(rated, cues).scores([question._replace(short_form="XYZ")])
    assert unknown == pytest.approx([1 / 3] * 3)
    assert TableScorer(rated, cues).scores([question._replace(long_forms=FORMS[:1])]) == [[1.0]]


def test_every_ambiguous_short_form_of_the_bundled_release_is_rated() -> None:
    model = AcronymModel.load(open_release(bundled("acronym")))
    rated = SenseFrequencies.load(frequencies.CLINICAL).words
    ambiguous = {s: forms for s, forms in model.dictionary.items() if len(forms) > 1}
    missing = [(s, form) for s, forms in ambiguous.items() for form in forms if (s, form) not in rated]
    assert missing == []
    assert set(rated) <= {(s, form) for s, forms in ambiguous.items() for form in forms}
    usual = Counter(short for (short, _), word in rated.items() if word == "usual")
    assert len(usual) > 0.9 * len(ambiguous)


def test_the_usual_long_form_is_taken_where_the_sentence_says_nothing() -> None:
    model = AcronymModel.load(open_release(bundled("acronym")))
    found = model.predict(["LFTs were normal.", "CT was done.", "BP was normal.", "He had s/p CABG."])
    assert [e.long_form for e in found[0]] == ["liver function tests"]
    assert [e.long_form for e in found[1]] == ["computed tomography"]
    assert [e.long_form for e in found[2]] == ["blood pressure"]
    assert found[3][0].long_form == "status post"


@pytest.mark.parametrize(
    ("text", "expected"), [("P.C.P", "PCP"), ("U.S.", "US"), ("AC.1", "AC.1"), ("MS", "MS")]
)
def test_full_stops_between_single_letters_are_removed(text: str, expected: str) -> None:
    assert undotted(text) == expected
