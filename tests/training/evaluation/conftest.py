"""The small corpus of idioms, which the tests of the training program use too."""

from __future__ import annotations

from tests.training.idiom.conftest import semeval

__all__ = ["semeval"]
