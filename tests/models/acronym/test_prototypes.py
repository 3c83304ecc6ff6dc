"""Prototypes of long forms: cosine, frequency, and what a long form without one gets."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from models.acronym.prototypes import COLUMNS, Mixture, Prototypes, Use
from models.releases.manifest import ReleaseError

USES = [
    Use("MS", "multiple sclerosis", "a", 3),
    Use("MS", "multiple sclerosis", "b", 0),
    Use("MS", "morphine", "a", 1),
    Use("RA", "right atrium", "b", 5),
]
VECTORS = torch.tensor([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [1.0, 1.0]])
FORMS = ("multiple sclerosis", "morphine", "mitral stenosis")


@pytest.fixture
def made() -> Prototypes:
    return Prototypes(USES, VECTORS, Mixture(0.5, 10, 1, unseen=0.25, smoothing=1))


def test_the_nearest_prototype_of_a_long_form_counts(made: Prototypes) -> None:
    assert made.similarities("MS", FORMS, torch.tensor([0.0, 5.0])) == pytest.approx([1, 0, 0.25])
    assert made.similarities("M.S", FORMS, torch.tensor([4.0, 0.0])) == pytest.approx([1, -1, 0.25])


def test_frequency_is_the_mean_share_over_the_sources(made: Prototypes) -> None:
    # Source a: 4, 2, 1 of 7 with one row added to each; source b has no row of the three: a third each.
    wanted = [(4 / 7 + 1 / 3) / 2, (2 / 7 + 1 / 3) / 2, (1 / 7 + 1 / 3) / 2]
    assert [math.exp(p) for p in made.priors("MS", FORMS)] == pytest.approx(wanted)
    assert made.priors("HA", FORMS) == [0, 0, 0]


def test_the_parts_are_added_with_their_weights(made: Prototypes) -> None:
    vector = torch.tensor([0.0, 5.0])
    found = made.mixed("MS", FORMS, [2.0, 4.0, 6.0], vector)
    wanted = [
        0.5 * n + 10 * s + p
        for n, s, p in zip([2, 4, 6], [1, 0, 0.25], made.priors("MS", FORMS), strict=True)
    ]
    assert found == pytest.approx(wanted)
    assert made.mixed("HA", FORMS, [2.0, 4.0, 6.0], vector) == [2, 4, 6]
    assert (made.knows("MS", FORMS), made.knows("HA", FORMS)) == (2, 0)


def test_a_release_gives_back_what_was_written(made: Prototypes, tmp_path: Path) -> None:
    table, vectors = tmp_path / "t.tsv", tmp_path / "v.safetensors"
    table.write_text("\n".join(["\t".join(COLUMNS), *("\t".join(map(str, u)) for u in USES)]), "utf-8")
    save_file({"vectors": VECTORS.half()}, vectors)
    found = Prototypes.load(table, vectors, made.mixture)
    assert found.uses == made.uses
    assert torch.allclose(found.vectors, made.vectors, atol=1e-3)
    save_file({"vectors": VECTORS[:2].contiguous()}, vectors)
    with pytest.raises(ReleaseError, match="one vector for each row"):
        Prototypes.load(table, vectors, made.mixture)
    with pytest.raises(ValueError, match="do not fit"):
        Prototypes(USES, VECTORS[:2], made.mixture)
