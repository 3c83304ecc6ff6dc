"""The small corpus of acronyms, written once for all tests of a session, and a small teaching corpus."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.acronym.corpus import write_corpus, write_dictionary
from training.acronym import data
from training.teaching.batches import AcronymContext

CONTEXTS = [
    AcronymContext("PD", "panda dance", "he saw a PD at the zoo"),
    AcronymContext("PD", "pain-drug", "the PD helped her knee"),
    AcronymContext("NEW", "never ever well", "she was NEW for a week"),
    *(AcronymContext("TP", form, f"{form} with TP {n}") for form in ("the pain", "top pick") for n in "123"),
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("acronyms"))


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small dictionary, a teaching corpus with a sense that no other source has and an acronym of its own,
    and a sentence to choose weights on.
    """
    monkeypatch.setattr(data, "acronym_contexts", lambda part: CONTEXTS)
    monkeypatch.setattr(data, "CLINICAL", write_dictionary(tmp_path / "dictionary.tsv"))
    rows = ["sentence\tshort_form\tlong_forms", "her PD was mild\tPD\tpain drug"]
    (tmp_path / "sentences.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr(data, "SENTENCES", tmp_path / "sentences.tsv")
