"""Medical entities, by either recogniser."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models.drugs import DrugLexicon
from models.releases.manifest import ReleaseError
from models.summarization import medical_entities
from models.summarization.medical_entities import (
    Entity,
    OwnRecogniser,
    StanzaRecogniser,
    merge_spans,
    named_in,
    recogniser,
    term_lexicon,
)

LEXICON = DrugLexicon({"zoloft": "sertraline", "sertraline": "sertraline"})


@pytest.fixture
def own() -> OwnRecogniser:
    return OwnRecogniser(None, ["Hair loss", "Back pain", "side effects", "Disorder"], LEXICON)


def texts(entities: list[Entity]) -> list[tuple[str, bool]]:
    return [(e.text, e.drug) for e in entities]


def test_drugs_and_terms_are_entities_and_general_words_are_not(own: OwnRecogniser) -> None:
    first, second = own.entities(
        ["Are hair loss and back pain side effects of Zoloft?", "Thanks, a disorder"]
    )
    assert texts(first) == [("hair loss", False), ("back pain", False), ("Zoloft", True)]
    assert second == []
    assert own.name == "terminology and drug lexicon"


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 9, True), (4, 13, False)], [("hair loss now", False)]),
        ([(0, 4, True), (5, 9, False)], [("hair", True), ("loss", False)]),
        ([(9, 20, False)], [("now", False)]),
        ([(13, 20, False)], []),
        ([(0, 9, False), (0, 9, True)], [("hair loss", False)]),
    ],
)
def test_overlapping_spans_are_merged_and_their_edges_are_trimmed(
    spans: list[tuple[int, int, bool]], expected: list[tuple[str, bool]]
) -> None:
    text = "hair loss now of the "
    entities = merge_spans(text, spans)
    assert texts(entities) == expected
    assert all(text[e.start : e.end] == e.text for e in entities)


@pytest.mark.parametrize(
    ("entity", "text", "named"),
    [
        ("Hair Loss", "does it cause hair loss?", True),
        ("treatments", "a treatment", True),
        ("Alzheimer's", "alzheimer", True),
        ("hair loss", "loss of hair", False),
        ("pain", "painful", False),
        ("sertraline", "I take Zoloft", True),
        ("sertraline", "I take nothing", False),
    ],
)
def test_a_text_names_an_entity_by_its_words_or_another_name(entity: str, text: str, named: bool) -> None:
    assert named_in(entity, text, LEXICON) is named


def test_without_stanza_the_projects_own_recogniser_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = recogniser(None, tmp_path)
    assert isinstance(own, OwnRecogniser)
    assert caplog.messages == [
        "entities are found without Stanza, which needs pip install -e '.[focus]' and in "
        f"{tmp_path} its English models tokenize/craft and ner/i2b2 and ner/bc5cdr"
    ]
    assert texts(own.entities(["Does ibuprofen cause nausea?"])[0]) == [
        ("ibuprofen", True),
        ("nausea", False),
    ]


class Pipeline:
    """Has the interface of Stanza's pipeline and marks one word."""

    def __init__(self, language: str, **options: Any) -> None:
        self.options = options | {"language": language}

    def __call__(self, text: str) -> Any:
        at = text.index("zoloft")
        return SimpleNamespace(ents=[SimpleNamespace(start_char=at, end_char=at + 6, type="CHEMICAL")])


def with_stanza(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(medical_entities, "version", lambda name: version)
    monkeypatch.setitem(sys.modules, "stanza", SimpleNamespace(Pipeline=Pipeline))


def models_in(folder: Path) -> Path:
    (folder / "en/ner").mkdir(parents=True)
    for name in medical_entities.STANZA_MODELS:
        (folder / f"en/ner/{name}.pt").touch()
    return folder


def test_stanzas_models_are_used_if_present_and_nothing_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_stanza(monkeypatch, "1.15.0")
    stanza = recogniser(None, models_in(tmp_path))
    assert isinstance(stanza, StanzaRecogniser)
    assert stanza.name == "Stanza (i2b2, bc5cdr)"
    options = stanza._pipeline.options
    assert (options["language"], options["dir"], options["download_method"]) == ("en", str(tmp_path), None)
    assert options["processors"]["ner"] == ["i2b2", "bc5cdr"]
    assert stanza.entities(["is zoloft safe", " "]) == [[Entity(3, 9, "zoloft", True)], []]


def test_stanza_is_not_used_without_a_model_or_in_a_version_that_unpickles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with_stanza(monkeypatch, "1.15.0")
    models_in(tmp_path)
    (tmp_path / "en/ner/i2b2.pt").unlink()
    assert StanzaRecogniser.load(tmp_path) is None
    assert "needs pip install -e '.[focus]'" in caplog.text
    with_stanza(monkeypatch, "1.12.1")
    with pytest.raises(
        ReleaseError, match=r"stanza 1\.12\.1 unpickles the models it loads: 1\.12\.2 is required"
    ):
        StanzaRecogniser.load(models_in(tmp_path / "other"))


def test_the_bundled_lexicons_are_made_once_and_hold_no_general_term() -> None:
    one, other = OwnRecogniser.bundled(None), OwnRecogniser.bundled(None)
    assert one.terms is other.terms
    assert one.drugs is other.drugs
    assert one.drugs.generic("Zoloft") == "sertraline"
    assert one.terms.canonical("insomnia") is not None
    assert term_lexicon(["pain", "disease"]).canonical("disease") is None
