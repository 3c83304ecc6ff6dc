"""Readers of the public corpora in the formats in which their authors publish them."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.releases.manifest import TrainingData
from models.types import ADE, DRUG, INDICATION, SYMPTOM, WITHDRAWAL
from training.common import UserError

#: A byte order mark, which spreadsheets and Windows write, is no part of the first name or token.
ENCODING = "utf-8-sig"
# Corpora as the manifests of releases name them.
CITATION = "none stated, citation asked"
ADE_NEGATIVES = TrainingData(
    name="ADE corpus v2, sentences without an adverse event, of four fifths of the abstracts",
    licence=CITATION,
)
PSYTAR_TRAINING = TrainingData(name="PsyTAR (Zolnoori et al. 2019), training part", licence="CC BY 4.0")
VAERS_REPORTS = TrainingData(
    name="reports of VAERS (2021, sampled by OHNLP), the recipe's part of the marked ones",
    licence="public domain",
)
PSYTAR_LABELS = {"ADR": ADE, "WD": WITHDRAWAL, "DI": INDICATION, "SSI": SYMPTOM}
ADE_LABELS = {"Adverse-Effect": ADE, "Drug": DRUG}


class CorpusError(UserError, ValueError):
    """A file is not in the form of its corpus; the message is one line with its path."""


@contextmanager
def in_form(path: Path) -> Iterator[None]:
    """Raises CorpusError where a file is not UTF-8, or has other columns, keys or tags than it should."""
    try:
        yield
    except CorpusError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, csv.Error) as error:
        reason = f"{type(error).__name__}: {error}"
        raise CorpusError(f"{path} is not in the form of its corpus: {reason}") from error


@dataclass(frozen=True, slots=True)
class GoldMention:
    """A gold mention by character offsets."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class GoldText:
    """A text with its gold mentions, and its gold relations as (drug, effect) indices of mentions."""

    id: str
    text: str
    mentions: tuple[GoldMention, ...]
    relations: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class GoldCoding:
    """A mention in its sentence and the names of the terms that are right."""

    mention: str
    sentence: str
    drug: str
    terms: tuple[str, ...]
    start: int | None = None
    """of the mention in the sentence; None: where its words first occur"""


def json_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file of JSON Lines that are not empty, with their numbers. Only a line feed ends a line:
    texts may hold other separators unescaped, such as U+2028. A byte order mark, which files of Windows may
    begin with, is left out.
    """
    with in_form(path):
        text = path.read_text(encoding=ENCODING)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def read_phee(path: Path) -> Iterator[tuple[str, list[Any]]]:
    """The sentences of a part of PHEE (Sun et al. 2022), each with its events as the file has them; raises
    CorpusError.
    """
    with in_form(path):
        for _, line in json_lines(path):
            row = json.loads(line)
            yield row["context"], [event for note in row["annotations"] for event in note["events"]]


def phee_pieces(argument: Mapping[str, Any] | None) -> Iterator[tuple[tuple[int, int], ...]]:
    """The places of each mention of an argument of an event of PHEE, which may be in several pieces."""
    for texts, starts in zip(argument["text"], argument["start"], strict=True) if argument else ():
        yield tuple((start, start + len(text)) for text, start in zip(texts, starts, strict=True))


def own_texts(path: Path) -> Iterator[str]:
    """The texts of a user's JSON Lines; raises typer.BadParameter for another line or encoding."""
    import typer  # noqa: PLC0415  only programs have it loaded

    try:
        lines = list(json_lines(path))
    except CorpusError:
        raise typer.BadParameter(f"{path} is not UTF-8") from None
    for number, line in lines:
        try:
            text = json.loads(line)["text"]
        except (ValueError, KeyError, TypeError):
            text = None
        if not is_text(text):
            raise typer.BadParameter(f"{path}, line {number} is no JSON object with a text")
        yield text


def is_text(value: object) -> bool:
    """Whether a value of JSON is a text of whole characters: it may have half of one, as a cut text has."""
    return isinstance(value, str) and value.encode(errors="replace").decode() == value


def read_psytar(path: Path) -> list[GoldText]:
    """Sentences of `token TAB tag` lines, empty lines between; spaces between tokens. Raises CorpusError."""
    with in_form(path):
        return _psytar(path)


def _psytar(path: Path) -> list[GoldText]:
    sentences: list[GoldText] = []
    rows: list[tuple[str, str]] = []
    for line in [*path.read_text(encoding=ENCODING).splitlines(), ""]:
        if line.strip():
            token, tag = line.split("\t")
            rows.append((token, tag))
        elif rows:
            sentences.append(_from_tags(f"{path.stem}-{len(sentences)}", rows))
            rows = []
    return sentences


def _from_tags(id_: str, rows: Sequence[tuple[str, str]]) -> GoldText:
    mentions: list[GoldMention] = []
    position = 0
    for token, tag in rows:
        end = position + len(token)
        if tag != "O":
            prefix, name = tag.split("-", 1)
            if prefix not in {"B", "I"}:
                raise ValueError(f"{tag!r} begins with neither B nor I")
            label = PSYTAR_LABELS[name]
            last = mentions[-1] if mentions else None
            if prefix == "I" and last and last.label == label and last.end == position - 1:
                mentions[-1] = GoldMention(last.start, end, label)
            else:
                mentions.append(GoldMention(position, end, label))
        position = end + 1
    return GoldText(id_, " ".join(token for token, _ in rows), tuple(mentions))


def read_ade(directory: Path) -> dict[str, GoldText]:
    """The ADE corpus by sentence id; overlapping entities are kept. Raises CorpusError."""
    path = directory / "sentences.json"
    with in_form(path):
        return _ade(path)


def _ade(path: Path) -> dict[str, GoldText]:
    texts: dict[str, GoldText] = {}
    for row in json.loads(path.read_text(encoding=ENCODING)):
        id_ = str(row["orig_id"])
        if id_ in texts:
            raise CorpusError(f"{path} has two sentences {id_}")
        try:
            texts[id_] = _from_entities(id_, row)
        except ValueError as error:
            raise CorpusError(f"{path}, sentence {id_}: {error}") from None
    return texts


def _from_entities(id_: str, row: dict[str, Any]) -> GoldText:
    """Raises ValueError for an entity or a relation outside of its sentence, and for a relation that is not
    between a drug and an effect: a negative place would be one from the end.
    """
    starts, position, tokens = [], 0, row["tokens"]
    for token in tokens:
        starts.append(position)
        position += len(token) + 1
    mentions: list[GoldMention] = []
    for e in row["entities"]:
        first, last = e["start"], e["end"] - 1
        if not 0 <= first <= last < len(tokens):
            raise ValueError(f"an entity of the tokens {first} to {last + 1} of {len(tokens)}")
        mentions.append(GoldMention(starts[first], starts[last] + len(tokens[last]), ADE_LABELS[e["type"]]))
    relations = []
    for pair in ((r["head"], r["tail"]) for r in row["relations"]):
        by_label = {mentions[i].label: i for i in pair if 0 <= i < len(mentions)}
        if by_label.keys() != {DRUG, ADE}:
            raise ValueError(
                f"a relation of the entities {pair[0]} and {pair[1]}, which are no drug and effect"
            )
        relations.append((by_label[DRUG], by_label[ADE]))
    return GoldText(f"ade-{id_}", " ".join(tokens), tuple(mentions), tuple(relations))


def read_ade_fold(directory: Path, fold: int) -> tuple[list[GoldText], list[GoldText]]:
    """Training and test sentences of fold 1 to 10; raises CorpusError."""
    texts, path = read_ade(directory), directory / "folds.json"
    with in_form(path):
        folds = json.loads(path.read_text(encoding=ENCODING))[f"split_{fold}"]
        return [texts[i] for i in folds["train set"]], [texts[i] for i in folds["test set"]]


def read_ade_negatives(path: Path) -> list[GoldText]:
    """Sentences without an adverse event, from lines `pmid NEG sentence`. Raises CorpusError."""
    with in_form(path):
        lines = path.read_text(encoding=ENCODING).splitlines()
        return [GoldText(f"neg-{i}", line.split(" NEG ", 1)[1].strip(), ()) for i, line in enumerate(lines)]


def read_negative_abstracts(path: Path) -> list[str]:
    """The PubMed id of each line of `read_ade_negatives`. Raises CorpusError."""
    with in_form(path):
        return [line.split(" NEG ", 1)[0] for line in path.read_text(encoding=ENCODING).splitlines()]


def read_ade_abstracts(directory: Path) -> dict[str, str]:
    """Sentence id of the ADE corpus to the PubMed id of its abstract, matched by the sentence's letters and
    digits. A sentence in two abstracts gets the lower id.

    Raises CorpusError, also where a sentence is in no abstract.
    """
    abstracts: dict[str, str] = {}
    path = directory / "DRUG-AE.rel"
    with in_form(path):
        for line in path.read_text(encoding=ENCODING).splitlines():
            number, sentence = line.split("|")[:2]
            key = letters_and_digits(sentence)
            abstracts[key] = min(number, abstracts.get(key, number))
    texts = list(read_ade(directory).values())
    if missing := [t.id for t in texts if letters_and_digits(t.text) not in abstracts]:
        raise CorpusError(f"{path} lacks {len(missing)} of the {len(texts)} sentences, {missing[0]} first")
    return {t.id: abstracts[letters_and_digits(t.text)] for t in texts}


def letters_and_digits(text: str) -> str:
    """The letters and digits of a text: the same where corpora differ in how they divide words."""
    return "".join(c for c in text.lower() if c.isalnum())


def read_psytar_codes(path: Path, unmapped: bool = False) -> Iterator[GoldCoding]:
    """Mentions with at least one known preferred or lowest-level name (several are separated by `|`), and,
    with `unmapped`, effects without a known name. Raises CorpusError.
    """
    with in_form(path), path.open(encoding=ENCODING, newline="") as file:
        for row in csv.DictReader(file):
            names = tuple(n.strip() for n in row["sider_meddra_terms"].split("|") if n.strip())
            if names or (unmapped and PSYTAR_LABELS.get(row.get("type", "ADR")) == ADE):
                yield GoldCoding(row["mention"], row["sentence"], row["drug_id"].split(".")[0], names)


def hold_out(texts: Sequence[GoldText], share: float, seed: int) -> tuple[list[GoldText], list[GoldText]]:
    """A random split into (rest, held out); the same for the same seed."""
    order = list(texts)
    random.Random(seed).shuffle(order)
    n = round(len(order) * share)
    return order[n:], order[:n]


def ade_part(split: str) -> str:
    """`fold 1` of `ade_fold_1`."""
    return split.removeprefix("ade_").replace("_", " ")


def ade_corpus(split: str) -> TrainingData:
    """The training part of a split of the ADE corpus."""
    name = f"ADE corpus v2 (Gurulingappa et al. 2012), {ade_part(split)} training part"
    return TrainingData(name=name, licence=CITATION)
