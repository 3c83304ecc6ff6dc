"""Names of adverse events that were not tagged: where they are found, and what the heads must say of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.lexicon import NameLexicon
from models.ner.decoding import OUTSIDE, Decoding, tags_of
from models.ner.heads import EventHead, Head
from models.ner.model import NerModel
from models.ner.status_head import StatusHead
from models.ner.untagged_events import candidates, read_names, write_names
from models.text import PlacedWords
from models.types import ADE, DRUG, LABELS, NEGATED, NO_EVENT, OWN, RELIEVED, STATUSES, Mention

NAMES = NameLexicon.of(["headache", "Dry mouth", "mouth", "crohns", "diabetes", "jitters", "insomnia"])
THRESHOLD = 0.8


def named(text: str, *found: Mention) -> list[str]:
    made = candidates(NAMES, text, PlacedWords.of(text), found, 0.91234)
    assert all((m.label, m.score, text[m.start : m.end]) == (ADE, 0.9123, m.text) for m in made)
    return [m.text for m in made]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dry mouth and a HEADACHE", ["dry mouth", "HEADACHE"]),
        ("#headache, #Insomnia", ["headache", "Insomnia"]),
        ("#headaches #headache_again #dry_mouth #no headache2", []),
        ("@headache_clinic said so", []),
        ("no headaches", []),
        ("", []),
    ],
)
def test_names_are_found_word_by_word_and_as_whole_hashtags(text: str, expected: list[str]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    ("text", "generic", "expected"),
    [
        ("Humira day 2 #headache", "adalimumab", ["headache"]),
        ("Humira day 2 #crohns", "adalimumab", []),
        ("Humira day 2, crohns", "adalimumab", ["crohns"]),
        ("Prozac day 2 #crohns", "fluoxetine", ["crohns"]),
        ("Prozac day 2 #crohns", None, ["crohns"]),
        ("Ozempic #diabetes #jitters", "semaglutide", ["jitters"]),
        ("Seroquel #diabetes", "quetiapine", ["diabetes"]),
        ("Vyvanse #insomnia", "lisdexamfetamine", ["insomnia"]),
        ("Ambien #insomnia", "zolpidem", []),
    ],
)
def test_a_hashtag_is_no_event_where_the_drug_is_taken_for_it(
    text: str, generic: str | None, expected: list[str]
) -> None:
    name = text.split(maxsplit=1)[0]
    assert named(text, Mention(0, len(name), name, DRUG, 1.0, generic)) == expected


def test_no_name_overlaps_a_mention() -> None:
    text = "headache pills, headache"
    assert named(text, Mention(0, 14, "headache pills", DRUG, 1.0)) == ["headache"]
    assert named("such a dry mouth", Mention(11, 16, "mouth", ADE, 0.5)) == []


def test_names_are_stored_once_in_lower_case(tmp_path: Path) -> None:
    write_names(tmp_path / "names.tsv", ["Rash", "rash", "Dry mouth"])
    assert (tmp_path / "names.tsv").read_text().splitlines() == ["name", "dry mouth", "rash"]
    assert [t for _, t in read_names(tmp_path / "names.tsv").find("A Dry Mouth")] == ["dry mouth"]
    write_names(tmp_path / "names.tsv", [])
    assert len(read_names(tmp_path / "names.tsv")) == 0
    (tmp_path / "names.tsv").write_text("rash\n")
    with pytest.raises(ValueError, match="header must begin with name"):
        read_names(tmp_path / "names.tsv")


def tagger(encoder: Encoder, event: float, **bias: float) -> NerModel:
    """Tags every word O; a sentence reports an event with log-odds `event`, and an effect has these biases of
    its statuses.
    """
    status, event_head = StatusHead(encoder.dimension), EventHead(encoder.dimension)
    head = Head(encoder.dimension, len(tags_of(LABELS)))
    for parameter in (*status.parameters(), *event_head.parameters(), *head.parameters()):
        torch.nn.init.zeros_(parameter)
    status.status[-1].bias.data = torch.tensor([bias.get(s, 0.0) for s in STATUSES])
    [*_, last] = (m for m in event_head.modules() if isinstance(m, torch.nn.Linear))
    last.bias.data.fill_(event)
    head.linear.bias.data[tags_of(LABELS).index(OUTSIDE)] = 12.0
    return NerModel(
        encoder,
        head,
        LABELS,
        DrugLexicon({"zoloft": "sertraline"}),
        event_head=event_head,
        status_head=status,
        names=NAMES,
        decoding=Decoding(window=50, named_from=THRESHOLD),
    )


TEXT = "zoloft gave me a headache"


def test_a_name_that_was_not_tagged_becomes_the_writers_event(small: Encoder) -> None:
    [[drug, effect]] = tagger(small, event=5.0, **{OWN: 9.0}).predict([TEXT])
    assert (drug.text, drug.label, drug.status) == ("zoloft", DRUG, None)
    assert (effect.text, effect.label, effect.status) == ("headache", ADE, OWN)
    assert effect.score == pytest.approx(0.9933, abs=2e-4)
    assert effect.status_score == pytest.approx(0.9993, abs=2e-4)


@pytest.mark.parametrize(
    ("event", "bias"),
    [
        (1.0, {OWN: 9.0}),  # the sentence reports an event with probability .73
        (5.0, {OWN: 2.0}),  # the mention is the writer's with probability .55
        (5.0, {NEGATED: 9.0}),
        (5.0, {RELIEVED: 9.0}),
    ],
)
def test_it_does_not_where_either_head_doubts_it(
    small: Encoder, event: float, bias: dict[str, float]
) -> None:
    assert [m.text for m in tagger(small, event, **bias).predict([TEXT])[0]] == ["zoloft"]


@pytest.mark.parametrize(
    ("text", "bias", "found"),
    [
        ("Dry mouth: no Headache: yes", {NO_EVENT: 9.0}, ["Headache"]),
        ("Dry mouth: no Headache: yes", {NEGATED: 9.0}, ["Headache"]),
        ("Don't think it doesn't cause headache", {NEGATED: 9.0}, ["headache"]),
        ("Dry mouth: no Headache: yes", {RELIEVED: 9.0}, []),
        ("Dry mouth: no Headache", {OWN: 9.0}, []),
    ],
)
def test_a_name_that_an_answer_affirms_is_an_event(
    small: Encoder, text: str, bias: dict[str, float], found: list[str]
) -> None:
    model = tagger(small, event=-2.0, **bias)
    assert [m.text for m in model.predict([text])[0] if m.status == OWN] == found
    assert model.with_decoding(event_below=0.9).predict([text]) == [[]]


def test_without_a_threshold_no_name_is_looked_for(small: Encoder) -> None:
    model = tagger(small, event=5.0, **{OWN: 9.0})
    model.decoding.named_from = 0.0
    assert [m.text for m in model.predict([TEXT])[0]] == ["zoloft"]


def test_a_name_obeys_the_threshold_of_the_post_too(small: Encoder) -> None:
    model = tagger(small, event=5.0, **{OWN: 9.0})  # the sentence reports an event with probability .9933
    for event_below, found in ((0.99, ["zoloft", "headache"]), (0.995, ["zoloft"])):
        (mentions,) = model.with_decoding(event_below=event_below).predict([TEXT])
        assert [m.text for m in mentions] == found


def test_mentions_stay_in_the_order_of_the_text_in_any_batch(small: Encoder) -> None:
    model = tagger(small, event=5.0, **{OWN: 9.0})
    texts = ["headache. zoloft. dry mouth", "nothing", "mouth, then zoloft"]
    found = model.predict(texts)
    assert [[m.text for m in mentions] for mentions in found] == [
        ["headache", "zoloft", "dry mouth"],
        [],
        ["mouth", "zoloft"],
    ]
    assert [model.predict([text])[0] for text in texts] == found
