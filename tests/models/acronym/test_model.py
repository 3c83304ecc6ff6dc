"""Expansions: by definitions in the text first, by the dictionary second, none for an unknown acronym."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.acronym.cues import CueWords
from models.acronym.frequencies import SenseFrequencies
from models.acronym.model import MOST_ASKED, AcronymModel, load_dictionary, plural
from models.acronym.questions import CONTEXT, Question, question
from models.acronym.tables import TableScorer
from models.types import Span

DICTIONARY = {
    "MS": ("multiple sclerosis", "mitral stenosis", "morphine sulfate"),
    "TEN": ("toxic epidermal necrolysis",),
    "HA": ("headache", "hyaluronic acid"),
    "It": ("information technology",),
}
TABLES = TableScorer(
    SenseFrequencies({("MS", "multiple sclerosis"): "usual", ("HA", "headache"): "usual"}),
    CueWords({("MS", "mitral stenosis"): ["murmur"], ("HA", "hyaluronic acid"): ["fillers"]}),
)


@pytest.fixture(scope="module")
def model() -> AcronymModel:
    return AcronymModel(DICTIONARY, TABLES)


@settings(deadline=None)
@given(st.text("ABab5();, .\n-\U0001f600", max_size=80))
def test_the_offsets_of_expansions_are_right_in_any_text(model: AcronymModel, text: str) -> None:
    (expansions,) = model.predict([text])
    assert all(text[e.start : e.end] == e.short_form for e in expansions)


def test_a_definition_applies_to_every_occurrence_and_overrides_the_dictionary(model: AcronymModel) -> None:
    text = "Morbus Schlatter (MS) was seen. The knee with MS hurt; in multiple clinics MS is known."
    (expansions,) = model.predict([text])
    assert [(e.short_form, e.long_form, e.score, e.source) for e in expansions] == [
        ("MS", "Morbus Schlatter", 1.0, "text")
    ] * 3
    assert [e.start for e in expansions] == [18, text.index("MS hurt"), text.index("MS is")]


def test_an_acronyms_context_is_its_sentence_also_where_that_was_cut_in_lines(model: AcronymModel) -> None:
    lines = "At the apex a loud diastolic murmur was heard, typical\nof MS. The sound was faint."
    (cut,), (whole,), (other,) = model.predict([lines, lines.replace("\n", " "), "He has MS. A murmur."])
    assert cut.long_form == whole.long_form == "mitral stenosis"
    assert cut.score == whole.score
    assert other.long_form == "multiple sclerosis"


def test_a_plural_is_looked_up_by_its_singular_and_expanded_in_the_plural(model: AcronymModel) -> None:
    texts = [
        "She gets HAs every week.",
        "Deep vein thrombosis (DVT) recurred; three DVTs in all.",
        "The HAS.",
    ]
    headaches, clots, none = model.predict(texts)
    assert [(e.start, e.end, e.short_form, e.long_form) for e in headaches] == [(9, 12, "HAs", "headaches")]
    assert [(e.short_form, e.long_form) for e in clots] == [
        ("DVT", "Deep vein thrombosis"), ("DVTs", "Deep vein thromboses"),
    ]  # fmt: skip
    assert none == []


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("liver function test", "liver function tests"), ("liver function tests", "liver function tests"),
        ("biopsy", "biopsies"), ("X-ray", "X-rays"), ("abscess", "abscesses"), ("prosthesis", "prostheses"),
        ("chest x", "chest xes"), ("patch", "patches"), ("skin rash", "skin rashes"),
    ],
)  # fmt: skip
def test_the_plural_of_a_long_form(one: str, several: str) -> None:
    assert plural(one) == several


@pytest.mark.parametrize(
    ("text", "long_form"),
    [
        ("A patient with MS and optic neuritis received interferon beta.", "multiple sclerosis"),
        ("The murmur of MS was louder.", "mitral stenosis"),
        ("HA fillers were injected into the lips.", "hyaluronic acid"),
        ("I woke with a bad HA this morning.", "headache"),
    ],
)
def test_the_sentence_decides_between_long_forms(model: AcronymModel, text: str, long_form: str) -> None:
    ((expansion,),) = model.predict([text])
    assert (expansion.long_form, expansion.source) == (long_form, "dictionary")
    assert 0 < expansion.score < 1
    assert text[expansion.start : expansion.end] == expansion.short_form


def test_the_long_form_with_the_highest_share_is_chosen(model: AcronymModel) -> None:
    text = "The murmur of MS was louder."
    span = Span(text.index("MS"), text.index("MS") + 2)
    shares = model.choose(text, span, DICTIONARY["MS"])
    ((expansion,),) = model.predict([text])
    assert sum(shares) == pytest.approx(1)
    assert expansion.score == pytest.approx(max(shares), abs=1e-4)
    assert expansion.long_form == DICTIONARY["MS"][shares.index(max(shares))]
    assert model.choose_many([(text, span, DICTIONARY["MS"])] * 2) == [shares, shares]


def test_words_beyond_the_context_change_nothing(model: AcronymModel) -> None:
    near = "pain " * CONTEXT + "MS" + " pain" * CONTEXT
    far = "murmur " * 30 + near + " murmur" * 30
    forms = DICTIONARY["MS"]
    one = model.choose(near, Span(near.index("MS"), near.index("MS") + 2), forms)
    other = model.choose(far, Span(far.index("MS"), far.index("MS") + 2), forms)
    assert other == one


@pytest.mark.parametrize(
    "text",
    [
        "The XQZ was seen with QT.", "The Patient Felt Much Better On Monday.",
        "She took ten of them in ms.", "MSG and TENS and M-S are other words.", "A B C", "",
    ],
)  # fmt: skip
def test_unknown_short_forms_are_not_expanded(model: AcronymModel, text: str) -> None:
    assert model.predict([text]) == [[]]


def test_the_time_of_a_long_sentence_of_acronyms_is_bounded() -> None:
    scorer = Mock(scores=lambda questions: [[1.0] for _ in questions])
    model = AcronymModel({"MS": ("multiple sclerosis",)}, scorer)
    text = f"{'a' * 30_000} {'seen MS, ' * 3_000}{'b' * 30_000}"
    started = time.process_time()
    assert len(model.predict([text])[0]) == 3_000
    assert time.process_time() - started < 5


def test_a_text_of_ambiguous_acronyms_asks_about_some_and_leaves_the_rest_undecided() -> None:
    asked: list[str] = []

    def scores(questions: Sequence[Question]) -> list[list[float]]:
        asked.extend(q.short_form for q in questions)
        return [[0.5] * len(q.long_forms) for q in questions]

    model = AcronymModel(DICTIONARY, Mock(scores=scores))
    one, other = model.predict(["MS and TEN. " * (MOST_ASKED + 2), "HA"])
    assert asked.count("MS") == MOST_ASKED
    assert [e.short_form for e in other] == ["HA"]
    assert len(one) == 2 * MOST_ASKED + 4
    assert [(e.long_form, e.score) for e in one if e.short_form == "MS"][-2:] == [
        ("multiple sclerosis", 0.0)
    ] * 2
    assert [bool(e.candidates) for e in one[-4:]] == [True, False, True, False]


def test_the_context_of_an_acronym_among_long_words_is_bounded() -> None:
    long_word = "\u6f22" * 5_000
    text = f"MS {long_word} MS {long_word}"
    asked = question(text, Span(5_004, 5_006), Span(0, len(text)), DICTIONARY["MS"])
    assert max(len(asked.left), len(asked.right)) <= 1_000
    first = question(text, Span(0, 2), Span(0, len(text)), DICTIONARY["MS"])
    assert (first.left, first.short_form) == ("", "MS")


def test_a_capitalised_word_is_an_acronym_only_if_the_dictionary_has_it(model: AcronymModel) -> None:
    ((expansion,),) = model.predict(["It helped The Patient with the computers."])
    assert (expansion.short_form, expansion.start) == ("It", 0)


def test_expansions_are_in_text_order_and_in_capitals_only_by_definition(model: AcronymModel) -> None:
    text = "I HAVE A HA SO BAD. my HA is back. THE HEAT SHOCK PROTEIN (HSP) AND HSP ROSE."
    (expansions,) = model.predict([text])
    assert [(e.short_form, e.start, e.source) for e in expansions] == [
        ("HA", text.index("HA is"), "dictionary"),
        ("HSP", text.index("HSP)"), "text"),
        ("HSP", text.index("HSP ROSE"), "text"),
    ]
    text = "\U0001f622 his HA came with heat shock protein (HSP) and his MS stayed with HSP."
    (expansions,) = model.predict([text])
    assert [e.short_form for e in expansions] == ["HA", "HSP", "MS", "HSP"]
    assert [e.source for e in expansions] == ["dictionary", "text", "dictionary", "text"]
    assert all(text[e.start : e.end] == e.short_form for e in expansions)


def test_acronyms_in_headings_and_hyphenated_words_are_expanded_but_not_to_themselves() -> None:
    model = AcronymModel(
        {"TEN": ("toxic epidermal necrolysis",), "C&S": ("culture and sensitivity",)}, TABLES
    )
    (skin, urine) = model.predict(["SKIN: TEN.", "URINE C&S pending."])
    assert [e.long_form for e in skin + urine] == ["toxic epidermal necrolysis", "culture and sensitivity"]
    # A long form that is the short form itself, for words in capitals and names.
    sentence = "Stage IA disease was treated with TEN."
    # The tables know neither, and the first of equal shares is taken.
    (left,) = AcronymModel({"IA": ("IA", "intra-articular")}, TABLES).predict([sentence])
    assert left == []
    expander = AcronymModel({"MTX": ["methotrexate"], "5-FU": ["fluorouracil"]}, TABLES)
    for sentence in ("MTX-induced pneumonitis", "an anti-MTX effect", "given 5-FU and MTX."):
        expanded = {e.short_form: sentence[e.start : e.end] for e in expander.predict([sentence])[0]}
        assert expanded.get("MTX") == "MTX", sentence
    assert {e.short_form for e in expander.predict(["given 5-FU daily"])[0]} == {"5-FU"}


def test_texts_of_a_batch_do_not_affect_each_other(model: AcronymModel) -> None:
    batch = ["he has MS today", "", "nothing", "his HA and MS came back"]
    batch += ["Morbus Schlatter (MS) was seen.", "A murmur of MS was heard."]
    together = model.predict(batch)
    assert [[e.short_form for e in own] for own in together] == [["MS"], [], [], ["HA", "MS"], ["MS"], ["MS"]]
    assert [own[0].source for own in together[4:]] == ["text", "dictionary"]
    for text, own in zip(batch, together, strict=True):
        (alone,) = model.predict([text])
        assert [(e.start, e.long_form) for e in alone] == [(e.start, e.long_form) for e in own]
    assert model.predict([]) == []


def test_a_dictionary_lists_the_long_forms_of_a_short_form_in_file_order(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.tsv"
    path.write_text("short_form\tlong_form\nMS\tb\nHA\tc\nMS\ta\n", encoding="utf-8")
    assert load_dictionary(path) == {"MS": ["b", "a"], "HA": ["c"]}
    path.write_text("short_form\tlong_form\nMS\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        load_dictionary(path)


def test_shorthand_in_small_letters_may_begin_a_sentence() -> None:
    model = AcronymModel({"pt": ["patient"], "h/o": ["history of"]}, TABLES)
    (found,) = model.predict(["Pt seen. H/o gout. The pt is well. PT normal."])
    assert [(e.short_form, e.long_form) for e in found] == [
        ("Pt", "patient"),
        ("H/o", "history of"),
        ("pt", "patient"),
    ]
