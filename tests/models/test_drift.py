"""The population stability index, references and where they are read from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models import drift
from models.drift import Histogram, TextFeatures, cosine_distance, make_reference, stability_index
from models.encoder.model import Encoder
from models.loading import load
from models.releases import store
from models.releases.manifest import Release, ReleaseError
from models.types import TASKS


def features(length: int, unknown: float = 0.0, direction: int = 0) -> TextFeatures:
    return TextFeatures(length, unknown, np.eye(4)[direction])


def test_the_index_is_that_of_its_definition() -> None:
    # Shares .25 .75 and .5 .5, of so many values that half a value more does not matter.
    many = 10**9
    expected = (0.5 - 0.25) * np.log(0.5 / 0.25) + (0.5 - 0.75) * np.log(0.5 / 0.75)
    assert stability_index([many, 3 * many], [many, many]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_the_index_is_near_zero_for_the_same_shares_and_symmetric(seed: int) -> None:
    random = np.random.default_rng(seed)
    counts, others = random.integers(0, 10_000, (2, 12)).tolist()
    assert stability_index(counts, counts) == 0
    assert stability_index(counts, [3 * c for c in counts]) < 0.01
    assert stability_index(counts, others) == pytest.approx(stability_index(others, counts))
    assert stability_index(counts, others) > 0.1


def test_the_index_of_a_sample_of_the_same_population_is_small_and_of_another_large() -> None:
    random = np.random.default_rng(0)
    reference = make_reference(
        "normal", [features(int(n)) for n in random.normal(300, 60, 2000)], [[]] * 2000
    ).histograms["text_length"]

    def counts(numbers: np.ndarray) -> list[int]:
        bins = [reference.bin(float(x)) for x in numbers]
        return [bins.count(i) for i in range(len(reference.counts))]

    assert stability_index(reference.counts, counts(random.normal(300, 60, 1000))) < 0.05
    assert stability_index(reference.counts, counts(random.normal(360, 60, 1000))) > 0.25


def test_a_reference_has_bins_of_equal_counts_and_the_direction_of_the_mean_vector() -> None:
    texts = [features(n, direction=n % 2) for n in range(1000)]
    made = make_reference("numbers", texts, [[0.5]] * 500 + [[]] * 500)
    assert made.histograms["text_length"].counts == [0, *[100] * 10, 0]
    assert made.histograms["found"].counts[:2] == [500, 500]
    assert sum(made.histograms["score"].counts) == 500
    assert made.mean == [0.70711, 0.70711, 0, 0]
    assert cosine_distance(made.mean, np.array([1.0, 0, 0, 0])) == pytest.approx(1 - 0.5**0.5)
    assert cosine_distance(made.mean, np.zeros(4)) == 1


@pytest.mark.parametrize(
    ("edges", "counts"), [([1.0], [1]), ([2.0, 1.0], [1, 1, 1]), ([float("nan")], [1, 1]), ([1.0], [1, -1])]
)
def test_a_histogram_that_does_not_fit_is_refused(edges: list[float], counts: list[int]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Histogram(edges=edges, counts=counts)


def test_the_features_of_a_text_are_its_length_its_unknown_pieces_and_its_vector(small: Encoder) -> None:
    known, unknown = drift.text_features(small, ["abc def", "abc \u4e2d"])
    assert (known.length, unknown.length) == (7, 5)
    assert known.unknown == 0
    assert unknown.unknown is not None and unknown.unknown > 0
    assert known.vector == pytest.approx(small.embed(["abc def"])[0].numpy(), abs=1e-6)


def test_without_an_encoder_a_reference_has_the_other_features() -> None:
    short, long = drift.text_features(None, ["abc", "\u4e2d" * 9])
    assert (short.length, short.unknown, long.length, long.vector.size) == (3, None, 9, 0)
    made = make_reference("short texts", [short, long], [[0.5], []])
    assert (made.mean, set(made.histograms)) == ([], set(drift.FEATURES))
    assert sum(made.histograms["unknown_pieces"].counts) == 0
    assert made.histograms["found"].counts[:2] == [1, 1]


def test_a_release_has_its_valid_reference_after_loading(tiny: dict[str, Release], tmp_path: Path) -> None:
    (tmp_path / drift.REFERENCE).write_text('{"texts": 0}')
    broken = Release(tmp_path, tiny["ner"].manifest, "0123456789ab")
    with pytest.raises(ReleaseError, match=r"reference\.json"):
        drift.read_reference(broken)
    own = tiny["normalization"]
    elsewhere = Release(tmp_path / own.version, own.manifest, own.version)
    drift.beside(elsewhere).write_text("not even JSON")
    assert drift.read_reference(elsewhere) is None
    for task in ("ner", "acronym", "summarization"):
        reference = load(tiny[task]).reference
        assert reference is not None
        assert reference.texts == 300
    assert load(tiny["normalization"]).reference is None


@pytest.mark.parametrize("task", TASKS)
def test_every_bundled_release_of_a_stage_has_a_reference(task: str) -> None:
    """Where a release is replaced: python -m training.evaluation.reference TASK"""
    release = store.open_release(store.bundled(task))
    reference = drift.read_reference(release)
    assert reference is not None
    assert reference.texts >= 200
    assert set(reference.histograms) == set(drift.FEATURES)
