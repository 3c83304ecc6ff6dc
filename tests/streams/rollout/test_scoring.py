"""The gate of the tagger and the coder: the events that both make of the held-out posts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from models import terminology
from models.loading import Loaded
from models.releases.manifest import ReleaseError
from models.types import RELEASED, Mention
from streams.rollout.announcing import GateError
from streams.rollout.scoring import Comparing, score
from streams.settings import Settings
from training.evaluation.evaluate import EvaluationError
from training.evaluation.posts.found import Names


class Silent:
    """A tagger that finds nothing."""

    task = "ner"

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
        return [[] for _ in batch]


def loaded(task: str, model: Any) -> Loaded:
    return Loaded(task, "0" * 12, "test", model, ([], [], 0.0))


@pytest.fixture(scope="module")
def coder() -> Loaded:
    names: Any = Names(terminology.load())
    names.terms = terminology.load()
    return loaded("normalization", names)


@pytest.fixture(scope="module")
def finding(coder: Loaded) -> Loaded:
    names: Any = coder.model
    return loaded("ner", names.tagger())


@pytest.mark.usefixtures("few_posts")
def test_a_tagger_is_compared_by_the_events_a_live_coder_makes_of_it(coder: Loaded, finding: Loaded) -> None:
    silent = loaded("ner", Silent())
    comparing = Comparing(None)
    better = comparing(finding, silent, coder)
    assert better is not None
    assert (better.score, better.split) == ("coded_f1", "teaching")
    assert (better.live, better.better_or_equal) == (0.0, True)
    assert better.candidate > 0.1
    assert better.records == 150
    worse = comparing(silent, finding, coder)
    assert worse is not None
    assert not worse.better_or_equal
    assert comparing.further is None


@pytest.mark.usefixtures("few_posts")
def test_a_coder_is_compared_on_the_mentions_of_the_live_tagger(coder: Loaded, finding: Loaded) -> None:
    equal = Comparing(None)(coder, coder, finding)
    assert equal is not None
    assert (equal.difference, equal.low, equal.high, equal.better_or_equal) == (0, 0, 0, True)
    assert equal.candidate > 0.1


@pytest.mark.usefixtures("few_posts")
def test_other_tasks_need_data_and_the_scores_of_the_two_on_data_decide_nothing(
    coder: Loaded, finding: Loaded, tmp_path: Path
) -> None:
    assert Comparing(None)(loaded("acronym", None), loaded("acronym", None), None) is None
    with pytest.raises(GateError, match=r"no file .*ner_train\.conll"):
        Comparing(tmp_path)(finding, finding, coder)
    (tmp_path / "psytar").mkdir()
    for name in ("train", "test"):
        lines = f"{name}\tO\nInsomnia\tB-ADR\nagain\tO\n"
        (tmp_path / f"psytar/ner_{name}.conll").write_text(lines, encoding="utf-8")
    comparing = Comparing(tmp_path)
    decisive = comparing(loaded("ner", Silent()), finding, coder)
    assert decisive is not None
    assert comparing.further is not None
    assert (decisive.score, comparing.further.score) == ("coded_f1", "strict_micro_f1")
    assert (comparing.further.candidate, comparing.further.live) == (0.0, 1.0)


def test_what_cannot_be_scored_is_one_clear_line() -> None:
    settings = Settings(dtype="float32")
    with pytest.raises(EvaluationError, match="with a release of ner and normalization, not relation"):
        score("posts", {"relation": "f" * 12}, None, settings)
    with pytest.raises(EvaluationError, match="posts psytar_test requires --data"):
        score("posts", {}, None, settings, split="psytar_test")
    with pytest.raises(EvaluationError, match="ner psytar_test requires --data"):
        score("ner", {}, None, settings)


@pytest.mark.parametrize("task", RELEASED)
def test_a_task_with_a_bundled_release_needs_none_named(task: str, tmp_path: Path) -> None:
    """Without a corpus, and of the judge perhaps without its base."""
    with pytest.raises((EvaluationError, ReleaseError)) as refused:
        score(task, {}, tmp_path, Settings(dtype="float32", cache=tmp_path))
    assert "no release" not in str(refused.value)


def test_the_gate_needs_no_package_of_training() -> None:
    code = """
import sys
for name in ("sklearn", "peft", "sentence_transformers", "rouge_score"):
    sys.modules[name] = None
import streams.rollout.scoring
from training.evaluation.posts import corpus
print(len(corpus.teaching().records))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert int(done.stdout) > 500
