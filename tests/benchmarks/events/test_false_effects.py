from benchmarks.events.false_effects import figures
from models.types import ADE, Mention
from training.common.corpora import GoldMention, GoldText


def mention(text: str, words: str) -> Mention:
    start = text.index(words)
    return Mention(start, start + len(words), words, ADE, 1.0)


def test_effects_found_are_counted_and_flagged_ones_are_not() -> None:
    none = ["Aspirin prevented stroke.", "No rash was seen after ibuprofen."]
    found = [[mention(none[0], "stroke")], [mention(none[1], "rash")]]
    texts = ["Rash after ibuprofen.", "There was no nausea with aspirin."]
    gold = [
        GoldText("1", texts[0], (GoldMention(0, 4, ADE),), ()),
        GoldText("2", texts[1], (GoldMention(13, 19, ADE),), ()),
    ]
    effects = [[mention(texts[0], "Rash")], [mention(texts[1], "nausea")]]
    assert figures(none, found, gold, effects) == {
        "false_per_1000": 500.0,
        "sentences_with_false": 0.5,
        "gold_found": 0.5,
        "gold_flagged": 0.5,
    }
