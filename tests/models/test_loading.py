"""Loading a release returns a model that passes the canary check, or raises ReleaseError."""

from __future__ import annotations

import errno
import json
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.encoder.base_files import base_digest
from models.loading import (
    FLOAT32_ONLY,
    Loaded,
    as_json,
    load,
    model_class,
    number_formats,
    same_answers,
)
from models.normalization.packed_vectors import PackedVectors
from models.releases.manifest import PassingError, Release, ReleaseError
from models.releases.store import bundled, open_release
from models.summarization.model import SummarizationModel
from models.types import TASKS, ShortQuestion
from training.common.build import build_release

TEXTS = ["On it for years. Can metformin cause hair loss? Is it safe?", "tell me about gout"]
ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A real release without files: the base encoder and a rule."""
    return build_release(
        tmp_path_factory.mktemp("source"),
        task="summarization",
        kind="a test",
        base="mini",
        base_sha256=base_digest("mini"),
        configuration={"max_pieces": 64},
        training_data=[],
        canary=TEXTS,
        scores=lambda model: [],
        root=tmp_path_factory.mktemp("root"),
    )


Change = Callable[[dict[str, Any]], object]


def changed(release: Release, folder: Path, change: Change) -> Release:
    """The release with a changed manifest that is still valid."""
    target = folder / "changed"
    target.mkdir(parents=True)
    manifest = json.loads((release.path / "manifest.json").read_bytes())
    change(manifest)
    (target / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return open_release(target)


@given(ANSWERS)
def test_answers_are_equal_to_themselves_and_become_json_values(answers: Any) -> None:
    assert same_answers(answers, answers, 0.0)
    assert as_json([ShortQuestion("a", "extractive", 0.5, 0, 1)]) == [
        {"text": "a", "method": "extractive", "score": 0.5, "start": 0, "end": 1}
        | dict.fromkeys(("focus", "focus_start", "focus_end"))
    ]
    assert as_json([(1, 2)]) == [[1, 2]]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1.0, 1.019, True),
        (1.0, 1.021, False),
        (0.99, 1, True),
        (1, 0.99, True),
        (1, 2, False),
        (1, 1.0, True),
        ("a", "a", True),
        ("a", "b", False),
        ("1.0", 1.0, False),
        (None, 0.0, False),
        (None, None, True),
        (float("nan"), float("nan"), False),
        ([], [], True),
        ([1.0], [1.0, 1.0], False),
        ([1.0, 2.0], [2.0, 1.0], False),
        ([0.5, "x"], [0.51, "x"], True),
        ({"a": 0.5}, {"a": 0.51}, True),
        ({"a": 0.5}, {"b": 0.5}, False),
        ({"a": 0.5}, {"a": 0.5, "b": None}, False),
        ({"a": [{"b": 1.0}]}, {"a": [{"b": 1.5}]}, False),
        ({}, [], False),
        ([], None, False),
    ],
)
def test_only_floating_point_numbers_may_differ_up_to_the_tolerance(
    one: object, other: object, same: bool
) -> None:
    assert same_answers(one, other, 0.02) is same
    assert same_answers(other, one, 0.02) is same


@pytest.mark.parametrize("dtype", ["auto", "float32"])
def test_a_valid_release_loads_and_passes_its_canary_check(release: Release, dtype: str) -> None:
    loaded = load(release, dtype=dtype)
    assert (loaded.task, loaded.version) == ("summarization", release.version)
    assert isinstance(loaded.model, SummarizationModel)
    assert loaded.passes_canary()
    assert [s.text for s in loaded.model.predict(TEXTS)] == ["Can metformin cause hair loss?", TEXTS[1]]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["canary"]["outputs"][0].update(text="Is it safe?"),
        lambda m: m["canary"]["outputs"][0].update(score=m["canary"]["outputs"][0]["score"] - 0.1),
        lambda m: m["canary"]["outputs"][0].update(start=0),
        lambda m: m["canary"]["outputs"].pop(),
        lambda m: m["canary"]["outputs"].reverse(),
        lambda m: m["canary"]["inputs"].append("Is tea fine?"),
    ],
)
def test_a_release_with_a_wrong_canary_is_refused(release: Release, tmp_path: Path, change: Change) -> None:
    hostile = changed(release, tmp_path, change)
    with pytest.raises(ReleaseError, match="the canary answers are not those in the manifest") as refused:
        load(hostile)
    assert hostile.version in str(refused.value)


def test_answers_of_the_editor_that_is_gone_are_not_compared(release: Release, tmp_path: Path) -> None:
    def edited(manifest: dict[str, Any], number: int = 1) -> None:
        for answer in manifest["canary"]["outputs"][:number]:
            answer.update(text="What are the treatments for gout?", method="edited")

    loaded = load(changed(release, tmp_path, edited), dtype="float32")
    assert loaded.passes_canary()
    assert loaded.canary[0] == TEXTS[1:]
    with pytest.raises(ReleaseError, match="no canary answer can be given today"):
        load(changed(release, tmp_path / "all", lambda m: edited(m, len(TEXTS))), dtype="float32")


def test_an_output_that_differs_within_the_tolerance_is_accepted(release: Release, tmp_path: Path) -> None:
    def nudge(manifest: dict[str, Any]) -> None:
        manifest["canary"]["outputs"][0]["score"] += 0.015

    assert load(changed(release, tmp_path, nudge), dtype="float32").passes_canary()


class RoundedThird:
    """A model whose one score is a third in its number format: .33333 in 32 bits, .33398 in 16."""

    task = "summarization"

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> RoundedThird:
        return cls(dtype)

    def predict(self, batch: Sequence[str]) -> list[float]:
        return [torch.tensor(1 / 3, dtype=self.dtype).item() for _ in batch]


@pytest.fixture
def imprecise(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    """A release whose output in 16 bits differs by more than its canary's tolerance, on every processor."""
    monkeypatch.setattr("models.loading.model_class", lambda task: RoundedThird)

    def third(manifest: dict[str, Any]) -> None:
        manifest["canary"] |= {"inputs": ["a"], "outputs": [1 / 3], "tolerance": 1e-4}

    return changed(release, tmp_path, third)


def set_processor(
    monkeypatch: pytest.MonkeyPatch, *, amx: bool = False, avx512: bool = False, name: str = "Intel Xeon"
) -> None:
    """Makes torch report that this is another processor."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": name})


def number_format_of(loaded: Loaded) -> torch.dtype:
    assert isinstance(loaded.model, SummarizationModel)
    dtype: torch.dtype = loaded.model.encoder.model.dtype
    return dtype


@pytest.mark.parametrize(
    ("processor", "device", "formats"),
    [
        ({"avx512": True, "name": "AMD EPYC"}, "cpu", ["bfloat16", "float32"]),
        ({"avx512": True, "name": "Intel Xeon"}, "cpu", ["float32"]),
        ({"avx512": False, "name": "AMD EPYC"}, "cpu", ["float32"]),
        ({"avx512": True, "amx": True}, "cpu", ["bfloat16", "float32"]),
        ({"avx512": True, "amx": True}, "cuda", ["float32"]),
    ],
)
def test_16_bits_are_chosen_where_their_products_are_faster(
    processor: dict[str, Any],
    device: str,
    formats: list[str],
    release: Release,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_processor(monkeypatch, **processor)
    assert number_formats(device) == formats
    if device == "cpu":
        assert number_format_of(load(release)) == getattr(torch, formats[0])


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_a_release_that_says_so_is_loaded_in_32_bits(
    dtype: str, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_processor(monkeypatch, amx=True)
    only = changed(release, tmp_path, lambda m: m["configuration"].update({FLOAT32_ONLY: True}))
    assert number_format_of(load(only, dtype=dtype)) == torch.float32


def test_32_bits_are_chosen_where_the_fast_format_fails_the_canary_check(
    imprecise: Release, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    set_processor(monkeypatch, amx=True)
    with caplog.at_level(logging.WARNING, "models.loading"):
        loaded = load(imprecise)
    assert isinstance(loaded.model, RoundedThird)
    assert loaded.model.dtype == torch.float32
    assert [r.getMessage() for r in caplog.records] == [
        f"summarization {imprecise.version}: the canary check fails in bfloat16"
    ]


def test_a_requested_format_is_kept_and_an_unknown_one_refused(imprecise: Release, release: Release) -> None:
    with pytest.raises(ReleaseError, match="canary"):
        load(imprecise, dtype="bfloat16")
    with pytest.raises((AttributeError, ReleaseError, ValueError), match="float33"):
        load(release, dtype="float33")


def test_every_task_has_a_model_class_and_no_other_name() -> None:
    assert {task: model_class(task).task for task in TASKS} == {task: task for task in TASKS}
    with pytest.raises(ReleaseError, match="'translation'"):
        model_class("translation")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(base_sha256="0" * 64), "another sha256 than declared"),
        (lambda m: m["configuration"].clear(), "max_pieces"),
        (lambda m: m["canary"].update(inputs=[7]), "AttributeError"),
    ],
)
def test_a_release_that_cannot_be_loaded_is_refused(
    release: Release, tmp_path: Path, change: Change, message: str
) -> None:
    with pytest.raises(ReleaseError, match=message):
        load(changed(release, tmp_path, change))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), PassingError),
        (OSError(errno.EMFILE, "Too many open files"), PassingError),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            PassingError,
        ),
        (OSError(errno.EISDIR, "Is a directory"), ReleaseError),
        (RuntimeError("size mismatch"), ReleaseError),
    ],
)
def test_a_machine_without_memory_or_file_handles_is_told_from_an_invalid_release(
    release: Release, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[ReleaseError]
) -> None:
    def raises(*_: object) -> None:
        raise error

    monkeypatch.setattr(SummarizationModel, "predict", raises)
    with pytest.raises(ReleaseError) as found:
        load(release)
    assert type(found.value) is kind


def test_a_configuration_that_needs_more_than_is_stored_is_refused_before_it_is_allocated(
    tmp_path: Path,
) -> None:
    source = tmp_path / "source"
    shutil.copytree(bundled("ner"), source)
    manifest = json.loads((source / "manifest.json").read_bytes())
    manifest["configuration"].update(labels=[f"L{i}" for i in range(5000)])
    (source / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"the configuration needs \d+ numbers, \d+ are stored"):
        load(open_release(source))


def test_packed_vectors_whose_product_is_far_larger_are_refused() -> None:
    stored = {"terms": torch.zeros(1_000_000, dtype=torch.int8), "scales": torch.zeros(1_000_000)}
    with pytest.raises(ReleaseError, match="not a matrix with a scale for each row"):
        PackedVectors.from_tensors(stored)
