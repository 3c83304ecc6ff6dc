"""The language of short posts: English ones are never taken for another, in sentences of our own."""

from __future__ import annotations

import pytest

from models.language import unsupported_language

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


@pytest.mark.parametrize("language", OTHERS)
def test_a_post_in_another_language_is_recognised(language: str) -> None:
    assert unsupported_language(OTHERS[language]) == language


@pytest.mark.parametrize(
    ("text", "language"),
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
def test_a_post_of_few_words_is_recognised_an_english_one_is_read(text: str, language: str | None) -> None:
    assert unsupported_language(text) == language


def test_a_model_may_read_more_languages_and_reads_the_beginning_of_a_text() -> None:
    assert unsupported_language(OTHERS["es"], ("en", "es")) is None
    assert unsupported_language(OTHERS["ja"], ("en", "es")) == "ja"
    assert unsupported_language("The pills made me dizzy and sick. " * 20 + OTHERS["ru"] * 500) is None
