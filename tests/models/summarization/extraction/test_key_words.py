"""Words that the short question probably has."""

from __future__ import annotations

import pytest
import torch

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.summarization.extraction.focus import candidates
from models.summarization.extraction.focus_features import FEATURES, features
from models.summarization.extraction.key_words import KeyWords, phrases, word_features
from models.summarization.extraction.message import Message, messages
from models.summarization.medical_entities import OwnRecogniser
from models.text import words

LEXICONS = OwnRecogniser(None, ["gout"], DrugLexicon({"zoloft": "sertraline"}))


def likely(text: str, **probabilities: float) -> list[float]:
    """The probability of each word."""
    return [probabilities.get(text[w.start : w.end], 0.0) for w in words(text)]


def keyed(small: Encoder, text: str, **probabilities: float) -> Message:
    (message,) = messages(small, LEXICONS, [text])
    return message._replace(keys=likely(text, **probabilities))


@pytest.mark.parametrize(
    ("text", "probabilities", "expected"),
    [
        ("He has night terrors now", {"night": 0.3, "terrors": 0.6}, ["night terrors", "terrors", "night"]),
        ("There is blood in my semen", {"blood": 0.5, "semen": 0.4}, ["blood in my semen", "blood", "semen"]),
        ("knee, wrist", {"knee": 0.3, "wrist": 0.4}, ["wrist", "knee"]),
        ("the x-ray dye", {"ray": 0.3, "dye": 0.16}, ["ray dye", "ray"]),
        ("a sore toe", {"sore": 0.18, "toe": 0.19}, []),
        ("", {}, []),
    ],
)
def test_phrases_are_probable_words_with_those_beside_them(
    text: str, probabilities: dict[str, float], expected: list[str]
) -> None:
    found = phrases(text, words(text), likely(text, **probabilities))
    assert [text[s.start : s.end] for s in found] == expected


def test_a_text_of_probable_words_has_a_bounded_number_of_phrases() -> None:
    text = ", ".join(f"toe{i}" for i in range(40))
    assert len(phrases(text, words(text), [0.5] * len(words(text)))) == 8


def test_function_words_and_punctuation_are_no_key_words(small: Encoder) -> None:
    text = "Is the Toe, with my toes, sore?"
    (message,) = messages(small, LEXICONS, [text])
    judged, x = word_features(text, message.words, message.vectors())
    assert [text[message.words[i].start : message.words[i].end] for i in judged] == ["Toe", "toes", "sore"]
    counts, capitals = x[:, -6], x[:, -3]
    assert counts[0] == counts[1] > counts[2] == 0
    assert capitals.tolist() == [1, 0, 0]
    model = KeyWords(torch.cat([torch.zeros(x.shape[1] - 1), torch.ones(1)]), small.dimension)
    (again,) = messages(small, LEXICONS, [text], model)
    assert [round(p, 2) for p in again.keys] == [0.0, 0.0, 0.73, 0.0, 0.0, 0.0, 0.73, 0.0, 0.73, 0.0]


def test_no_words_specialists_and_other_weights_give_no_key_word(small: Encoder) -> None:
    model = KeyWords(torch.zeros(2 * small.dimension + 6), small.dimension)
    assert [m.keys for m in messages(small, LEXICONS, ["", " "], model)] == [[], []]
    with pytest.raises(ValueError, match="weights of shape"):
        KeyWords(torch.zeros(4), 8)
    message = keyed(small, "The rheumatologist looked at the redness.", rheumatologist=0.5, redness=0.4)
    assert [f.text for f in candidates(message)] == ["redness"]


def test_a_name_that_no_list_has_is_a_candidate_by_its_probability(small: Encoder) -> None:
    message = keyed(
        small, "My cat naps. He wakes with night terrors since May.", night=0.3, terrors=0.6, since=0.2
    )
    found = {f.text: f for f in candidates(message)}
    assert found["night terrors"].sources == {"key"}
    assert "terrors since" not in found and "since" not in found
    rows = features(message, list(found.values()), [0.0] * len(found))
    row = dict(zip(FEATURES, rows[list(found).index("night terrors")], strict=True))
    assert (row["key"], row["key_most"], row["key_least"]) == (1, 0.6, 0.3)
