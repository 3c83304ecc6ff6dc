"""The language of short posts: English ones are never taken for another, in sentences of our own."""

from __future__ import annotations

import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from models import language
from models.language import identify, unsupported_language

#: Short posts by language, written for this test.
OTHERS = {
    "es": "Desde que tomo sertralina no puedo dormir.",
    "pt": "Estou tomando sertralina e não consigo dormir.",
    "fr": "Depuis que je prends de la sertraline, je ne dors plus.",
    "de": "Seit ich Sertralin nehme, kann ich nicht schlafen.",
    "nl": "Sinds ik sertraline slik kan ik niet slapen.",
    "it": "Da quando prendo la sertralina non riesco a dormire.",
    "ja": "セルトラリンを飲み始めてから眠れません。",
    "ko": "세르트랄린을 먹고 나서 잠을 못 자요.",
    "ar": "منذ أن بدأت السيرترالين لا أستطيع النوم.",
    "ru": "После таблеток совсем не могу уснуть.",
}


@pytest.mark.parametrize("code", OTHERS)
def test_a_post_in_another_language_is_recognised(code: str) -> None:
    assert unsupported_language(OTHERS[code]) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", None),
        ("\U0001f600 !!!", None),
        ("lol", None),
        ("no dormir", None),
        ("Celiprolol gave me pneumonitis.", None),
        ("Abilify akathisia", None),
        ("olanzapine diabetes", None),
        ("Depakote tremors \U0001f62c", None),
        ("humira arthralgia myalgia", None),
        ("Latuda = akathisia + insomnia", None),
        ("Seroquel XR 300mg lamictal 200 mg", None),
        ("Remicade: erythema nodosum, vaginitis, dyspnea", None),
        ("ugh zoloft insomnia again smh", None),
        ("IM SO TIRED OF THIS EFFING SEROQUEL", None),
        ("@juan_perez #sertralina makes me sweat https://example.com/no-puedo-dormir", None),
        ("My abuela says hola but the metformin still gives me the runs", None),
        ("60mg prednisone = moon face", None),
        ("me duele la cabeza con lexapro", "es"),
        ("Zoloft ba\u015f\u0131m d\u00f6n\u00fcyor", "tr"),
        ("\u0417\u043e\u043b\u043e\u0444\u0442 \u0442\u043e\u0448\u043d\u0438\u0442", "ru"),
    ],
)
def test_a_post_of_few_words_is_recognised_an_english_one_is_read(text: str, code: str | None) -> None:
    assert unsupported_language(text) == code


@pytest.mark.parametrize(
    "text",
    [
        "b4 i tk zoloft i wz ok nw i cnt slp n feel sik 24/7 smh",
        "tkn humira n got hivz al ovr mi arm omg",
        "Nag-metformin ako tapos ang sakit ng tiyan ko, diarrhea all day",
        "nag take ako ng losartan tapos sobrang cough every night hindi maka sleep",
        "Grabe yung side effects ng Lexapro sa akin, nausea and dizzy all day long",
        "Mi tek di metformin an mi belly a hurt mi bad bad",
        "Wi a tek di Prozac an mi head a spin all di time",
        "abeg dis metformin dey make my belle run well well",
        "i don tire for dis prozac, e dey give me headache every day",
        "Wah take Panadol extra alr still vomit sia, damn giddy leh",
        "kena rash after amoxicillin, whole body itchy sia",
        "Ah wis oan sertraline an it gied me the boak aw day, cannae sleep",
        "y does wellbutrin mk my handz shk sm1 pls hlp",
        "prednisone moonface iz real yall im so swoln n cnt stop eatn",
    ],
)
def test_text_speak_varieties_and_mixtures_with_english_are_read(text: str) -> None:
    assert unsupported_language(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "Tom\u00e9 Prozac y me dio n\u00e1useas",
        "Ozempic me da mucho asco y vomito todo el dia",
        "No tome Humira, le dio alergia a mi hermana",
        "J'ai des naus\u00e9es avec Ozempic, c'est horrible",
        "On m'a prescrit du Lexapro, on verra bien",
        "Was hat Prozac mit mir gemacht, ich bin so m\u00fcde",
        "Mit Ozempic war mir so schlecht, dass ich im Bett lag",
        "Ich habe von Humira einen Ausschlag am Arm",
        "Jag tar Zoloft i tv\u00e5 veckor och kan inte sova",
        "Ik neem Zoloft en ben de hele dag moe",
        "Biore Prozac i nie mog\u0119 spa\u0107 w nocy",
        "Ozempic mi fa venire la nausea e non mangio",
        "Tomo Lexapro e sinto muita tontura",
        "Saya makan Panadol dan sakit kepala tak hilang",
        "Umiinom ako ng metformin at sumasakit ang tiyan ko",
        "Am luat Xanax si nu pot sa dorm",
        # Without the name of a drug of the lexicon.
        "Ang sakit ng tiyan ko tapos nag diarrhea ako all day long",
    ],
)
def test_a_post_in_another_language_with_the_name_of_a_drug_is_not_read(text: str) -> None:
    assert unsupported_language(text) is not None


def test_how_sure_the_language_is_is_said() -> None:
    sure = identify(["Zoloft made me so dizzy that I could not drive"])[0].score
    assert sure is not None and sure > 0.9
    (mixed,) = identify(["Nag-metformin ako tapos ang sakit ng tiyan ko, diarrhea all day"])
    assert mixed.other is None and mixed.score is not None and mixed.score < 0.01
    assert identify(["lol"]) == [(None, None)] and identify([]) == []


def test_a_model_may_read_more_languages_and_reads_the_beginning_of_a_text() -> None:
    assert unsupported_language(OTHERS["es"], ("en", "es")) is None
    assert unsupported_language(OTHERS["ja"], ("en", "es")) == "ja"
    assert unsupported_language("The pills made me dizzy and sick. " * 20 + OTHERS["ru"] * 500) is None


def test_texts_of_a_batch_are_identified_as_the_library_does_alone() -> None:
    texts = ["", *OTHERS.values(), "pills 😀 made me dizzy"]
    identifier = language._identifier()
    library = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    for text, row in zip(texts, identifier.probabilities(texts), strict=True):
        ranked = dict(library.rank(text))
        of_codes = {code: row[identifier.codes.index(code)].item() for code in ranked}
        assert of_codes == pytest.approx(ranked, abs=1e-5)
