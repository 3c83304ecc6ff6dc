"""Prototypes of long forms: similarities, sense priors, and long forms without a prototype."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from models.acronym.frequencies import SenseFrequencies
from models.acronym.prototypes import COLUMNS, WRITTEN, Mixture, PrototypeEntry, Prototypes
from models.releases.manifest import ReleaseError

ENTRIES = [
    PrototypeEntry("MS", "multiple sclerosis", "a", 3),
    PrototypeEntry("MS", "multiple sclerosis", "b", 0),
    PrototypeEntry("MS", "morphine", "a", 1),
    PrototypeEntry("RA", "right atrium", "b", 5),
]
VECTORS = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [1.0, 1.0]])
FORMS = ("multiple sclerosis", "morphine", "mitral stenosis")


@pytest.fixture
def prototypes() -> Prototypes:
    return Prototypes(ENTRIES, VECTORS, Mixture(0.5, 10, 1, unseen=0.25, smoothing=1))


def test_the_nearest_prototype_of_a_long_form_counts(prototypes: Prototypes) -> None:
    assert prototypes.similarities("MS", FORMS, torch.tensor([0.0, 5.0])) == pytest.approx([1, 0, 0.25])
    assert prototypes.similarities("M.S", FORMS, torch.tensor([4.0, 0.0])) == pytest.approx([1, -1, 0.25])


def test_a_prior_is_the_mean_share_over_the_sources(prototypes: Prototypes) -> None:
    # Source a: 4, 2 and 1 of 7 rows with one added to each; source b has none of the three: 1/3 each.
    expected = [(4 / 7 + 1 / 3) / 2, (2 / 7 + 1 / 3) / 2, (1 / 7 + 1 / 3) / 2]
    assert [math.exp(p) for p in prototypes.priors("MS", FORMS)] == pytest.approx(expected)
    assert prototypes.priors("HA", FORMS) == [0, 0, 0]


def test_what_only_written_sentences_show_is_raised_and_they_count_in_no_prior() -> None:
    entries = [
        PrototypeEntry("MS", "multiple sclerosis", "a", 3),
        PrototypeEntry("MS", "morphine", WRITTEN, 2),
        PrototypeEntry("MS", "multiple sclerosis", WRITTEN, 2),
    ]
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    prototypes = Prototypes(entries, vectors, Mixture(unseen=0.25, smoothing=1, written=0.1))
    assert prototypes.similarities("MS", FORMS, torch.tensor([0.0, 2.0])) == pytest.approx([0, 1.1, 0.25])
    assert prototypes.only_written("MS", FORMS) == [False, True, False]
    rare = SenseFrequencies({("MS", "morphine"): "rare"})
    assert not any(Prototypes(entries, vectors, prototypes.mixture, rare).only_written("MS", FORMS))
    assert [math.exp(p) for p in prototypes.priors("MS", FORMS)] == pytest.approx([4 / 6, 1 / 6, 1 / 6])


def test_what_is_added_to_counts_follows_the_estimated_frequencies() -> None:
    words = {("MS", "mitral stenosis"): "usual", ("MS", "morphine"): "rare", ("HA", "headache"): "usual"}
    frequencies = SenseFrequencies(words)
    mixture = Mixture(unseen=0.25, smoothing=1)
    prototypes = Prototypes(ENTRIES, VECTORS, mixture, frequencies)
    shares = frequencies.shares("MS", FORMS)
    # Source a has 3 and 1 rows, source b none of the three.
    expected = [((n + 3 * s) / 7 + s) / 2 for n, s in zip([3, 1, 0], shares, strict=True)]
    assert [math.exp(p) for p in prototypes.priors("MS", FORMS)] == pytest.approx(expected)
    # No source counts this one, and no prototype shows it.
    forms = ("hyperactive", "headache")
    assert [math.exp(p) for p in prototypes.priors("HA", forms)] == pytest.approx([0.3 / 1.3, 1 / 1.3])
    near, far = prototypes.combined("HA", forms, [0.0, 0.0], torch.tensor([1.0, 0.0]))
    assert near < far


def test_the_score_is_the_weighted_sum_of_its_parts(prototypes: Prototypes) -> None:
    vector = torch.tensor([0.0, 5.0])
    combined = prototypes.combined("MS", FORMS, [2.0, 4.0, 6.0], vector)
    expected = [
        0.5 * n + 10 * s + p
        for n, s, p in zip([2, 4, 6], [1, 0, 0.25], prototypes.priors("MS", FORMS), strict=True)
    ]
    assert combined == pytest.approx(expected)
    assert prototypes.combined("HA", FORMS, [2.0, 4.0, 6.0], vector) == [2, 4, 6]
    # A release without cue words has weight 0 for them.
    assert prototypes.combined("MS", FORMS, [2.0, 4.0, 6.0], vector, [1.0, 0.0, 0.0]) == combined
    weighted = Prototypes(ENTRIES, VECTORS, prototypes.mixture._replace(cues=3))
    raised = weighted.combined("MS", FORMS, [2.0, 4.0, 6.0], vector, [1.0, 0.0, 0.5])
    assert raised == pytest.approx([combined[0] + 3, combined[1], combined[2] + 1.5])
    assert (prototypes.n_known("MS", FORMS), prototypes.n_known("HA", FORMS)) == (2, 0)


def test_prototypes_are_loaded_as_they_were_written(prototypes: Prototypes, tmp_path: Path) -> None:
    table, vectors = tmp_path / "t.tsv", tmp_path / "v.safetensors"
    table.write_text("\n".join(["\t".join(COLUMNS), *("\t".join(map(str, u)) for u in ENTRIES)]), "utf-8")
    save_file({"vectors": VECTORS.half()}, vectors)
    loaded = Prototypes.load(table, vectors, prototypes.mixture)
    assert loaded.entries == prototypes.entries
    assert torch.allclose(loaded.vectors, prototypes.vectors, atol=1e-3)
    save_file({"vectors": VECTORS[:2].contiguous()}, vectors)
    with pytest.raises(ReleaseError, match="one vector for each row"):
        Prototypes.load(table, vectors, prototypes.mixture)
    with pytest.raises(ValueError, match="do not fit"):
        Prototypes(ENTRIES, VECTORS[:2], prototypes.mixture)
