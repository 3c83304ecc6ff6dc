from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from benchmarks.speed import encoder as speed
from benchmarks.speed.__main__ import main, measured
from benchmarks.speed.passes import noted
from benchmarks.speed.timing import by_turns, chunks, side_by_side
from models.encoder.model import Encoder
from models.encoder.packed.bert import ROWS

APP = typer.Typer()
APP.command()(main)


def test_forms_take_turns_first_and_last() -> None:
    ran: list[str] = []
    times = by_turns({"a": lambda: ran.append("a"), "b": lambda: ran.append("b")}, 3)
    assert ran == [*"ab", *"ba", *"ab", *"ba"]
    assert list(times) == ["a", "b"]
    assert all(0 <= taken.wall < 1 for taken in times.values())


def test_calls_run_side_by_side_and_answer_in_their_order() -> None:
    assert side_by_side([lambda i=i: i for i in range(5)], 2) == [0, 1, 2, 3, 4]  # type: ignore[misc]
    assert [list(part) for part in chunks(range(5), 2)] == [[0, 1], [2, 3], [4]]


def test_the_operations_of_a_pass_are_those_that_torch_counts() -> None:
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415  imports triton

    encoder = Encoder.for_inference("mini")
    with noted() as passes:
        encoder.embed(["a headache since monday", "nausea", "zoloft gave me a headache"])
    (one,) = passes
    with FlopCounterMode(display=False) as counter:
        one.again()
    rows = (one.pieces + one.padding) / one.pieces
    counted = counter.get_total_flops()
    assert counted / rows * 0.98 < one.operations < counted


def test_a_pass_alone_computes_what_it_did() -> None:
    encoder = Encoder.for_inference("mini")
    with noted() as passes:
        expected = encoder.encode_pieces([[2000, 2001, 2002], [2003]])
    (one,) = passes
    with torch.inference_mode():
        groups = list(one.model._groups(one.rows, one.lengths, one.runs, one.split))
    found = {i: group.last[row] for group in groups for row, i in enumerate(group.members)}
    for i, hidden in enumerate(expected):
        assert torch.equal(found[i][1:-1], hidden)


def test_the_peak_is_that_of_the_faster_number_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SIDE", 256)
    monkeypatch.setattr(speed, "PEAK_SECONDS", 0.1)
    assert speed._peak(1, torch.bfloat16) > 0.5 * speed._peak(1, torch.float32)


@pytest.mark.slow
def test_a_quick_run_measures_what_needs_no_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SIDE", 1024)
    monkeypatch.setattr(speed, "PEAK_SECONDS", 0.2)
    command = ["--data", str(tmp_path), "--quick", "--json", str(tmp_path)]
    wanted = ["roofline", "stages"]
    answer = CliRunner().invoke(APP, [*command, "--parts", ",".join(wanted)])
    assert answer.exit_code == 0, answer.output
    figures = {name: json.loads((tmp_path / f"{name}.json").read_bytes()) for name in wanted}
    assert 0.05 < figures["roofline"]["encoder_share_of_cpu"] < 1
    # Beside other work a peak of 0.2 seconds may be measured below what the encoder reaches a moment later.
    assert all(0 < row["of_gemm_peak"] < 3 for row in figures["roofline"]["rows"].values())
    assert len(figures["stages"]["rows"]) == 6
    for row in figures["stages"]["rows"].values():
        # One batch: less than a whole tile of rows is added to each pass.
        passes, pieces = row["passes_a_batch"], row["pieces_a_record"] * row["records"]
        assert 0 <= row["padding_share"] * pieces < ROWS * passes
    assert all(part["commit"] and part["machine"] for part in figures.values())


def test_an_unknown_part_is_named() -> None:
    answer = CliRunner().invoke(APP, ["--parts", "roofline,rooflines"])
    assert answer.exit_code == 2
    assert "rooflines" in answer.output


def test_without_a_kafka_a_part_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PV_TEST_KAFKA", raising=False)
    ((name, figures),) = measured(["framework"], tmp_path, quick=True)
    assert name == "framework"
    assert "java" in figures["left_out"]
