"""Acronyms: definitions in the text first, the dictionary second, nothing where neither knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.acronym.model import CONTEXT, AcronymModel, best_long_form, definitions, load_dictionary
from models.encoder.model import Encoder
from models.types import Expansion, Span

DICTIONARY = {
    "MS": ("multiple sclerosis", "mitral stenosis", "morphine sulfate"),
    "TEN": ("toxic epidermal necrolysis",),
    "HA": ("headache", "hyaluronic acid"),
    "It": ("information technology",),
}


@pytest.fixture(scope="module")
def model(mini: Encoder) -> AcronymModel:
    return AcronymModel(mini, DICTIONARY)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("heat shock protein (HSP) rose", {"HSP": "heat shock protein"}),
        ("HSP (heat shock protein) rose", {"HSP": "heat shock protein"}),
        ("acute toxic epidermal necrolysis (TEN)", {"TEN": "toxic epidermal necrolysis"}),
        ("acetylcholine (ACh) fell", {"ACh": "acetylcholine"}),
        ("5-fluorouracil (5-FU) was given", {"5-FU": "5-fluorouracil"}),
        ("anti-tumour necrosis factor (TNF) therapy", {"TNF": "anti-tumour necrosis factor"}),
        ("electrocardiogram (ECG; 12 leads)", {"ECG": "electrocardiogram"}),
        ("white blood cells (WBC, low)", {"WBC": "white blood cells"}),
        (
            "acute kidney injury (AKI) after vancomycin, then deep vein thrombosis (DVT)",
            {"AKI": "acute kidney injury", "DVT": "deep vein thrombosis"},
        ),
        ("myocardial infarction (MI). Later mitral insufficiency (MI).", {"MI": "myocardial infarction"}),
        ("heat shock protein (XYZ)", {}),
        ("no long form (HSP) here", {}),
        ("(HSP)", {}),
        ("he was ill (see Figure 2)", {}),
        ("a dose (100 mg) of it", {}),
        ("unclosed bracket (HSP", {}),
        ("HSP ()", {}),
        ("", {}),
    ],
)
def test_a_definition_is_a_long_form_beside_a_bracket(text: str, wanted: dict[str, str]) -> None:
    assert definitions(text) == wanted


@pytest.mark.parametrize(
    ("short_form", "text", "wanted"),
    [
        ("HSP", "the heat shock protein", "heat shock protein"),
        # The first letter must begin a word, the others need not.
        ("SP", "heat shock protein", "shock protein"),
        ("BP", "low blood pressure", "blood pressure"),
        ("CNS", "central nervous system", "central nervous system"),
        ("CNS", "brain system", None),
        ("EAT", "great", None),
        ("AKI", "AKI", None),
        ("AKI", "acute AKI", None),
        ("TNF-a", "tumour necrosis factor alpha", "tumour necrosis factor alpha"),
        ("AB", "", None),
        ("AB", "a one two three four five b", None),
    ],
)
def test_the_letters_of_a_short_form_are_found_from_right_to_left(
    short_form: str, text: str, wanted: str | None
) -> None:
    assert best_long_form(short_form, text) == wanted


@given(st.text("ABCab5- ", min_size=1, max_size=6), st.text("ABCabc5 -(x", max_size=40))
def test_a_long_form_is_the_end_of_its_text_and_holds_the_letters_in_order(
    short_form: str, text: str
) -> None:
    found = best_long_form(short_form, text)
    if found is not None:
        assert text.rstrip().endswith(found)
        assert len(found) > len(short_form)
        letters = iter(found.lower())
        assert all(c in letters for c in short_form.lower() if c.isalnum())


@settings(deadline=None)
@given(st.text("ABab5();, .\n-\U0001f600", max_size=80))
def test_definitions_and_expansions_hold_in_any_text(model: AcronymModel, text: str) -> None:
    for short_form, long_form in definitions(text).items():
        assert short_form in text
        assert all(word in text for word in long_form.split())
    (found,) = model.predict([text])
    assert all(text[e.start : e.end] == e.short_form for e in found)


def test_a_definition_holds_for_every_occurrence_and_beats_the_dictionary(model: AcronymModel) -> None:
    text = "Morbus Schlatter (MS) was seen. The knee with MS hurt; in multiple clinics MS is known."
    (found,) = model.predict([text])
    assert [(e.short_form, e.long_form, e.score, e.source) for e in found] == [
        ("MS", "Morbus Schlatter", 1.0, "text")
    ] * 3
    assert [e.start for e in found] == [18, text.index("MS hurt"), text.index("MS is")]


def test_a_definition_of_one_text_does_not_hold_in_another(model: AcronymModel) -> None:
    one, other = model.predict(["Morbus Schlatter (MS) was seen.", "A murmur of MS was heard."])
    assert [e.source for e in one] == ["text"]
    assert [e.source for e in other] == ["dictionary"]


@pytest.mark.parametrize(
    ("text", "long_form"),
    [
        ("A patient with MS and optic neuritis received interferon beta.", "multiple sclerosis"),
        ("HA fillers were injected into the lips.", "hyaluronic acid"),
        ("I woke with a bad HA this morning.", "headache"),
    ],
)
def test_the_dictionarys_nearest_long_form_is_chosen_by_the_sentence(
    model: AcronymModel, text: str, long_form: str
) -> None:
    ((found,),) = model.predict([text])
    assert (found.long_form, found.source) == (long_form, "dictionary")
    assert 0 < found.score < 1
    assert text[found.start : found.end] == found.short_form


def test_the_choice_agrees_with_the_cosines(model: AcronymModel) -> None:
    text = "A patient with MS and optic neuritis received interferon beta."
    at = Span(text.index("MS"), text.index("MS") + 2)
    cosines = model.choose(text, at, DICTIONARY["MS"])
    ((found,),) = model.predict([text])
    assert found.score == pytest.approx(max(cosines), abs=1e-3)
    assert found.long_form == DICTIONARY["MS"][cosines.index(max(cosines))]
    assert model.choose_many([(text, at, DICTIONARY["MS"])] * 2) == [
        pytest.approx(cosines, abs=1e-5),
        pytest.approx(cosines, abs=1e-5),
    ]


def test_a_long_form_equal_to_the_acronym_changes_nothing(model: AcronymModel) -> None:
    assert model.choose("seen with MS again", Span(10, 12), ["MS"]) == pytest.approx([1.0], abs=1e-5)


def test_only_the_words_near_the_acronym_count(model: AcronymModel) -> None:
    near = "pain " * CONTEXT + "MS" + " pain" * CONTEXT
    far = "violin " * 30 + near + " violin" * 30
    forms = DICTIONARY["MS"]
    one = model.choose(near, Span(near.index("MS"), near.index("MS") + 2), forms)
    other = model.choose(far, Span(far.index("MS"), far.index("MS") + 2), forms)
    assert other == pytest.approx(one, abs=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        "The XQZ was seen with QT.",
        "The Patient Felt Much Better On Monday.",
        "She took ten of them in ms.",
        "MSG and TENS and M-S are other words.",
        "A B C",
        "",
    ],
)
def test_what_neither_text_nor_dictionary_knows_stays_as_it_is(model: AcronymModel, text: str) -> None:
    assert model.predict([text]) == [[]]


def test_a_capitalised_word_is_an_acronym_only_where_the_dictionary_has_it(model: AcronymModel) -> None:
    ((found,),) = model.predict(["It helped The Patient with the computers."])
    assert (found.short_form, found.start) == ("It", 0)


def test_a_shouted_sentence_is_not_looked_up_but_its_definitions_hold(model: AcronymModel) -> None:
    text = "I HAVE A HA SO BAD. my HA is back. THE HEAT SHOCK PROTEIN (HSP) AND HSP ROSE."
    (found,) = model.predict([text])
    assert [(e.short_form, e.start, e.source) for e in found] == [
        ("HA", text.index("HA is"), "dictionary"),
        ("HSP", text.index("HSP)"), "text"),
        ("HSP", text.index("HSP ROSE"), "text"),
    ]


def test_expansions_stand_in_text_order_whatever_their_source(model: AcronymModel) -> None:
    text = "\U0001f622 his HA came with heat shock protein (HSP) and his MS stayed with HSP."
    (found,) = model.predict([text])
    assert [e.short_form for e in found] == ["HA", "HSP", "MS", "HSP"]
    assert [e.source for e in found] == ["dictionary", "text", "dictionary", "text"]
    assert all(text[e.start : e.end] == e.short_form for e in found)


def test_texts_do_not_mix_in_a_batch(model: AcronymModel) -> None:
    batch = ["he has MS today", "", "nothing", "his HA and MS came back"]
    together = model.predict(batch)
    assert [[e.short_form for e in found] for found in together] == [["MS"], [], [], ["HA", "MS"]]
    for text, found in zip(batch, together, strict=True):
        (alone,) = model.predict([text])
        assert [(e.start, e.long_form) for e in alone] == [(e.start, e.long_form) for e in found]
    assert model.predict([]) == []


def test_an_expansion_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        Expansion(3, 3, "MS", "multiple sclerosis", 1.0, "text")


def test_a_dictionary_collects_the_long_forms_of_a_short_form_in_order(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.tsv"
    path.write_text("short_form\tlong_form\nMS\tb\nHA\tc\nMS\ta\n", encoding="utf-8")
    assert load_dictionary(path) == {"MS": ["b", "a"], "HA": ["c"]}
    path.write_text("short_form\tlong_form\nMS\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        load_dictionary(path)


def test_an_acronym_with_a_hyphen_after_or_before_it_is_found(mini: Encoder) -> None:
    expander = AcronymModel(mini, {"MTX": ["methotrexate"], "5-FU": ["fluorouracil"]})
    for text in ("MTX-induced pneumonitis", "an anti-MTX effect", "given 5-FU and MTX."):
        found = {e.short_form: text[e.start : e.end] for e in expander.predict([text])[0]}
        assert found.get("MTX") == "MTX", text
    assert {e.short_form for e in expander.predict(["given 5-FU daily"])[0]} == {"5-FU"}
