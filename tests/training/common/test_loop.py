"""The loop of all programs: which epoch is kept, when training stops, and a run that is killed."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from training.common.batching import by_length, length_batches
from training.common.checkpoint import FILE, Checkpoint, CheckpointError
from training.common.loop import Epoch, Trainee, TrainingLoop, steps_of, warmup_linear


class Line(Trainee):
    """Fits a straight line; its validation scores are given."""

    def __init__(self, scores: Sequence[float | None], patience: int = 0, untrained: bool = False) -> None:
        torch.manual_seed(1)
        self.epochs, self.patience, self.scores_untrained = len(scores), patience, untrained
        self.line = nn.Linear(1, 1)
        self.given = scores
        self.prepared: list[int] = []
        self.optimizer = torch.optim.SGD(self.line.parameters(), lr=0.1)
        self.schedule = warmup_linear(self.optimizer, steps_of(self.epochs, 3, 1))

    def modules(self) -> Sequence[nn.Module]:
        return (self.line,)

    def prepare(self, number: int) -> None:
        self.prepared.append(number)

    def epoch(self, number: int) -> dict[str, float]:
        def loss(x: float) -> Tensor:
            assert self.line.training
            difference: Tensor = self.line(torch.tensor([x])) - 3 * x + torch.rand(1)
            return difference.square().sum()

        return self.one_pass([1.0, 2.0, 0.5], loss, number)

    def validate(self, number: int) -> dict[str, float]:
        assert number == 0 or not self.line.training
        score = 0.0 if number == 0 else self.given[number - 1]
        return {} if score is None else {"score": score}


def numbers(epochs: Iterator[Epoch]) -> list[int]:
    return [epoch.number for epoch in epochs]


def weight(trainee: Line) -> float:
    return trainee.line.weight.item()


def test_the_best_epoch_is_kept_or_else_the_last_or_none() -> None:
    line = Line([0.2, 0.9, 0.9, 0.5])
    loop, weights = TrainingLoop(line, {}), []
    for _ in loop.epochs():
        weights.append(weight(line))
    assert [e.kept for e in loop.curve] == [True, True, False, False]
    loop.load_best()
    assert weight(line) == weights[1] != weights[3]
    assert loop.best == loop.curve[1]
    other = TrainingLoop(Line([None, None, None]), {})
    assert [e.kept for e in other.epochs()] == [False, False, True]
    empty = Line([])
    before = weight(empty)
    other = TrainingLoop(empty, {})
    other.run()
    assert (other.best, other.kept, weight(empty)) == (None, None, before)


def test_the_untrained_model_is_kept_where_that_is_asked_for_and_no_epoch_is_better() -> None:
    worse, better = Line([-0.2, -0.1], untrained=True), Line([-0.2, 0.1], untrained=True)
    worse.keeps_untrained = better.keeps_untrained = True
    before = weight(worse)
    for line, best in ((worse, 0), (better, 2)):
        loop = TrainingLoop(line, {})
        loop.run()
        assert loop.best is not None
        assert loop.best.number == best
    assert weight(worse) == before != weight(better)


def test_an_epoch_that_is_refused_is_not_kept_however_good_it_is() -> None:
    class Strict(Line):
        def refusal(self, scores: Mapping[str, float], untrained: Mapping[str, float]) -> str:
            return "too good" if scores["score"] - untrained["score"] > 0.8 else ""

    loop = TrainingLoop(Strict([0.5, 0.9, 0.6], untrained=True), {})
    rows = list(loop.epochs())
    assert [(e.kept, e.note) for e in rows] == [(True, ""), (False, "too good"), (True, "")]
    assert "too good" in rows[1].line()


def test_patience_counts_epochs_before_a_kill_and_a_scored_base_is_in_the_curve(tmp_path: Path) -> None:
    loop = TrainingLoop(Line([0.5, 0.4, 0.6, 0.1, 0.2, 0.9], patience=2), {})
    assert numbers(loop.epochs()) == [1, 2, 3, 4, 5]
    scores = [0.5, 0.4, 0.3, 0.9]
    for epoch in TrainingLoop(Line(scores, patience=2), {}, tmp_path).epochs():
        if epoch.number == 2:
            break
    assert numbers(TrainingLoop(Line(scores, patience=2), {}, tmp_path).epochs()) == [3]
    loop = TrainingLoop(Line([0.5], untrained=True), {})
    assert numbers(loop.epochs()) == [1]
    assert loop.curve[0] == Epoch(0, {}, {"score": 0.0}, 0.0)


@pytest.mark.parametrize("killed_after", [1, 2, 3])
@pytest.mark.parametrize("untrained", [False, True])
def test_a_killed_run_resumes_to_equal_weights(tmp_path: Path, killed_after: int, untrained: bool) -> None:
    scores = [0.3, 0.1, 0.8, 0.2]
    whole = TrainingLoop(Line(scores, untrained=untrained), {"a": 1})
    whole.run()
    broken = TrainingLoop(Line(scores, untrained=untrained), {"a": 1}, tmp_path)
    for epoch in broken.epochs():
        if epoch.number == killed_after:
            break
    line = Line(scores, untrained=untrained)
    resumed = TrainingLoop(line, {"a": 1}, tmp_path)
    torch.manual_seed(77)
    resumed.run()
    assert line.prepared == [killed_after, *range(killed_after + 1, 5)]
    assert [(e.number, e.losses, e.scores, e.kept) for e in resumed.curve] == [
        (e.number, e.losses, e.scores, e.kept) for e in whole.curve
    ]
    assert isinstance(whole.trainee, Line)
    assert weight(line) == weight(whole.trainee)
    assert numbers(TrainingLoop(Line(scores), {"a": 1}, tmp_path).epochs()) == []


def test_a_run_with_other_settings_is_refused(tmp_path: Path) -> None:
    list(TrainingLoop(Line([0.5]), {"lr": 1}, tmp_path).epochs())
    with pytest.raises(CheckpointError, match="other settings"):
        list(TrainingLoop(Line([0.5]), {"lr": 2}, tmp_path).epochs())


def test_each_loss_is_reported_and_a_line_of_the_curve_has_what_was_decided() -> None:
    class Two(Line):
        def epoch(self, number: int) -> dict[str, float]:
            def losses(x: float) -> dict[str, Tensor]:
                found = self.line(torch.tensor([x])).square().sum()
                return {"one": found, "other": 2 * found}

            return self.one_pass([1.0, 2.0], losses, number)

    (epoch,) = TrainingLoop(Two([None]), {}).epochs()
    assert epoch.losses["other"] == pytest.approx(2 * epoch.losses["one"])
    assert epoch.loss == pytest.approx(3 * epoch.losses["one"])
    row = Epoch(3, {"loss": 0.5}, {"F1": 0.25, "recall": 1.0}, 2.0, kept=True)
    assert row.line("clner") == "clner epoch  3  loss 0.5000  validation: F1 0.2500, recall 1.0000  2 s  kept"


def test_two_runs_at_once_do_not_share_a_folder(tmp_path: Path) -> None:
    """Each would replace the state of the other, also before the first has saved one."""
    code = (
        "import sys; from pathlib import Path; from training.common.checkpoint import Checkpoint; "
        "Checkpoint(Path(sys.argv[1]), {}).load(); print('begun', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        with pytest.raises(CheckpointError, match="in use by another run"):
            Checkpoint(tmp_path, {}).load()
        other.kill()
    assert numbers(TrainingLoop(Line([0.5]), {}, tmp_path).epochs()) == [1]


def test_a_full_disk_leaves_the_last_state_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, {})
    checkpoint.save({"epoch": 1})
    size = (tmp_path / FILE).stat().st_size
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        with pytest.raises(CheckpointError, match=r"cannot be written: .*File too large"):
            checkpoint.save({"epoch": 2, "more": torch.zeros(1000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.glob("*.new"))
    assert checkpoint.load() == {"epoch": 1}
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[: size // 2])
    with pytest.raises(CheckpointError, match="is damaged: remove it"):
        checkpoint.load()


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch on the protocol of the damaged file
def test_a_state_that_is_damaged_anywhere_is_named(tmp_path: Path) -> None:
    """Reading ends with one of ten kinds of errors, by where the damage is."""
    checkpoint, path = Checkpoint(tmp_path, {}), tmp_path / FILE
    checkpoint.save({"epoch": 1, "more": torch.ones(200)})
    whole = path.read_bytes()
    rng = random.Random(0)
    half = [whole[: rng.randrange(len(whole))] for _ in range(20)]
    noise = [rng.randbytes(rng.randrange(1, 300)) for _ in range(60)]
    for damaged in [*half, *noise, b"", b"\x80\x02]q\x00."]:
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="is damaged"):
            checkpoint.load()
    torch.save([1], path)
    with pytest.raises(CheckpointError, match="is damaged"):
        checkpoint.load()


def test_other_weights_than_those_that_were_saved_are_no_state(tmp_path: Path) -> None:
    """Such a file loads: a run would go on with numbers that no epoch has made."""
    checkpoint, path = Checkpoint(tmp_path, {}), tmp_path / FILE
    checkpoint.save({"epoch": 1, "more": torch.full((200,), 1.5)})
    whole = path.read_bytes()
    at = whole.index(torch.full((200,), 1.5).numpy().tobytes())
    for length in (1, 400):
        path.write_bytes(whole[: at + 3] + bytes(length) + whole[at + 3 + length :])
        with pytest.raises(CheckpointError, match="is damaged"):
            checkpoint.load()


LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
def test_batches_hold_every_record_once_and_are_as_many_as_the_schedule_counts(
    lengths: list[int], size: int, pool: int, seed: int
) -> None:
    data = list(enumerate(lengths))
    batches = length_batches(data, size=size, pool=pool, length=lambda r: r[1], rng=random.Random(seed))
    assert sorted(record for batch in batches for record in batch) == data
    assert all(0 < len(batch) <= size for batch in batches)
    if len(data) <= size * pool:
        assert len(batches) == steps_of(1, len(data), size)


def test_records_of_like_length_share_a_batch_in_an_order_that_the_generator_decides() -> None:
    data = [n % 10 for n in range(100)]

    def batches(seed: int) -> list[list[int]]:
        return length_batches(data, size=10, pool=10, length=lambda n: n, rng=random.Random(seed))

    assert all(len(set(batch)) == 1 for batch in batches(1))
    assert batches(1) == batches(1)
    assert batches(1) != batches(2)


@given(LENGTHS, st.integers(1, 9))
def test_predictions_are_made_from_the_shortest_on(lengths: list[int], size: int) -> None:
    order = [i for batch in by_length(lengths, size) for i in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths)
