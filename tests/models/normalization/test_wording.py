"""The words that a mention is coded by."""

from __future__ import annotations

import pytest

from models.normalization.wording import effect_of_part
from models.types import ADE, Mention


def mentions(text: str, *surfaces: str) -> list[Mention]:
    spans = [Mention(text.index(s), text.index(s) + len(s), s, ADE, 0.9) for s in surfaces]
    return sorted(spans, key=lambda m: (m.start, m.end))


def completed(text: str, *surfaces: str) -> list[str]:
    all_ = mentions(text, *surfaces)
    return [effect_of_part(text, m, all_) + m.text for m in all_]


@pytest.mark.parametrize(
    ("text", "surfaces", "expected"),
    [
        ("tingling in arms, legs and hands", ("tingling in arms", "legs", "hands"),
         ["tingling in arms", "tingling in legs", "tingling in hands"]),
        ("bad pain in my right arm, legs and feet, it", ("bad pain in my right arm", "legs and feet"),
         ["bad pain in my right arm", "bad pain in legs and feet"]),
        ("swollen ankles & my hands", ("swollen ankles", "my hands"), ["swollen ankles", "swollen my hands"]),
        ("Numb lips, tongue, and in my face", ("Numb lips", "tongue", "my face"),
         ["Numb lips", "Numb tongue", "Numb my face"]),
    ],
)  # fmt: skip
def test_a_part_of_the_body_alone_is_coded_with_the_effect_of_its_enumeration(
    text: str, surfaces: tuple[str, ...], expected: list[str]
) -> None:
    assert completed(text, *surfaces) == expected


@pytest.mark.parametrize(
    ("text", "surfaces"),
    [
        ("tingling in arms, legs ache", ("tingling in arms", "legs ache")),
        ("tingling in arms. Legs", ("tingling in arms", "Legs")),
        ("nausea, legs", ("nausea", "legs")),
        ("tingling in arms but legs", ("tingling in arms", "legs")),
        ("tingling in arms, rash, legs", ("tingling in arms", "rash", "legs")),
        ("arms, legs", ("arms", "legs")),
        ("headache, hands", ("headache", "hands")),
        ("backache and stomach", ("backache", "stomach")),
        ("sore feet and heartburn", ("sore feet", "heartburn")),
    ],
)
def test_other_mentions_are_coded_by_their_own_words(text: str, surfaces: tuple[str, ...]) -> None:
    assert completed(text, *surfaces) == list(surfaces)
