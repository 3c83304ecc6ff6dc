"""The measurements of a GPU, with the processor in its place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import faiss
import pytest
import torch
import typer

from benchmarks.gpu.__main__ import main
from benchmarks.gpu.search import QUERIES, search
from benchmarks.gpu.stages import stages
from benchmarks.speed.setup import QUICK, Setup


def test_searches_are_compared_with_those_of_the_first_device() -> None:
    rows = search((30, 40), 1, ("cpu",))["rows"]
    assert list(rows) == [f"{size} vectors, {n} queries, cpu" for size in (30, 40) for n in QUERIES]
    for row in rows.values():
        assert row["searches_per_second"] > 0
        assert (row["same_neighbours"], row["cosines_differ_by"]) == (1.0, 0.0)


@pytest.mark.slow
def test_every_stage_is_measured_in_both_number_formats_and_compared(tmp_path: Path) -> None:
    amount = replace(QUICK, records={"posts": 2, "sentences": 2, "questions": 1})
    names = ["ner", "acronym", "relation", "normalization"]
    rows = stages(Setup(tmp_path, amount), "cpu", names)["rows"]
    assert set(rows) == {
        "ner of posts", "acronym of sentences", "relation of sentences", "normalization of posts",
        "normalization of sentences",
    }  # fmt: skip
    for row in rows.values():
        # The same computation as what it is compared with.
        assert row["gpu_float32_same"] == 1.0
        assert 0 <= row["gpu_bfloat16_same"] <= 1
        assert row["gpu_float32_per_second"] > 0


def test_the_figures_name_what_they_were_made_with(tmp_path: Path) -> None:
    main(parts="search", device="cpu", quick=True, result=tmp_path / "new")
    figures = json.loads((tmp_path / "new/gpu_search.json").read_bytes())
    assert {"faiss", "torch", "gpu", "machine", "commit", "rows"} <= figures.keys()


def test_unknown_parts_are_refused() -> None:
    with pytest.raises(typer.BadParameter, match=r"unknown parts \['memory'\]"):
        main(parts="search,memory", device="cpu")
    with pytest.raises(typer.BadParameter, match=r"unknown stages \['tagger'\]"):
        main(parts="stages", only="ner,tagger", device="cpu")


def test_a_baseline_on_the_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PV_DEVICE", "cuda")
    with pytest.raises(typer.BadParameter, match="unset PV_DEVICE"):
        main(parts="search", device="cpu", quick=True)


def test_a_faiss_without_a_gpu_is_not_measured_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)
    with pytest.raises(typer.BadParameter, match="FAISS has no GPU here"):
        main(parts="search", device="cuda", quick=True)
    with pytest.raises(typer.BadParameter, match="FAISS has no GPU here"):
        main(parts="stages", only="ner,normalization", device="cuda", quick=True)
