"""Imports run one way, and the command line starts without waiting for a model library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parent.parent


def test_the_contracts_between_packages_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    # import-linter would disable every logger of this process, and other tests read what is logged.
    monkeypatch.setattr("logging.config.dictConfig", lambda settings: None)
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS


@pytest.mark.parametrize(
    "modules", ["streams.__main__, streams.agents.pipeline, streams.cli.ingest", "tests.conftest"]
)
def test_the_command_line_and_the_tests_start_without_a_model_library(modules: str) -> None:
    code = f"import sys, {modules}; print('torch' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert answer.stdout.strip() == "False"


def test_a_release_of_tables_is_served_without_a_model_library() -> None:
    code = (
        "import sys; from models.loading import load; from models.releases.store import bundled, open_release"
        "; load(open_release(bundled('acronym'))); print('torch' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert answer.stdout.strip() == "False"


SERVED = """
import sys
from models.loading import load
from models.encoder import mpnet
from models.releases.store import BUNDLED, open_release
folders = [path for path in BUNDLED.glob("*/*") if (path / "manifest.json").is_file()]
if not mpnet.is_installed():  # the base of the judge is an extra
    folders = [path for path in folders if path.parent.name != "judge"]
loaded = [load(open_release(path)) for path in folders]  # runs each on its canary inputs
others = {"transformers", "huggingface_hub", "peft", "sklearn", "pandas"}
print(len(loaded), sorted(others & set(sys.modules)))
import training.acronym.release, training.idiom.release, training.ner.release
import training.normalization.release, training.relation.release, training.summarization.release
others = {"transformers", "huggingface_hub", "peft", "sentence_transformers", "rouge_score"}
print(sorted(others & set(sys.modules)))
"""


@pytest.mark.slow
def test_releases_are_served_and_training_programs_imported_without_transformers() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", SERVED], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert answer.returncode == 0, answer.stderr
    served, trained = answer.stdout.splitlines()
    loaded, others = served.split(maxsplit=1)
    assert int(loaded) >= 5
    assert (others, trained) == ("[]", "[]")
