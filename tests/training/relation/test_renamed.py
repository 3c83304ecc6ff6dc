"""A relation release that is made again knows the drugs of today's lexicon."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from models import drugs
from models.drift import REFERENCE
from models.releases.loading import load
from models.releases.manifest import ReleaseError
from models.releases.store import describe, open_release, publish
from tests.tiny_releases import tiny_release
from training.relation.__main__ import main


def test_only_the_drug_names_and_what_was_measured_change(
    corpus: Path, tiny_bert: str, tmp_path: Path
) -> None:
    main(
        data=corpus, output=tmp_path / "made", base=tiny_bert, epochs=1, pair_epochs=1, batch=4, width=8,
        rank=4, pair_rank=4, dimension=6, pair_dimension=6, words=60, precision="float32",
    )  # fmt: skip
    (path,) = (tmp_path / "made/relation").iterdir()
    made = open_release(path)
    for file in made.manifest.files:
        (tmp_path / "old").mkdir(exist_ok=True)
        shutil.copyfile(made.file(file), tmp_path / "old" / file)
    (tmp_path / "old/drugs.tsv").write_text("name\tgeneric\nzoloft\tsertraline\n")
    files = describe(tmp_path / "old")
    old = publish(tmp_path / "old", made.manifest.model_copy(update={"files": files}), tmp_path)

    main(data=corpus, output=tmp_path / "new", like=old.path)
    (path,) = (tmp_path / "new/relation").iterdir()
    new = open_release(path)
    changed = {name for name, file in new.manifest.files.items() if old.manifest.files[name] != file}
    assert changed == {"drugs.tsv"}
    assert REFERENCE in new.manifest.files
    assert new.file("drugs.tsv").read_bytes() == drugs.BUNDLED.read_bytes()
    assert new.manifest.configuration == old.manifest.configuration | {"like": old.version}
    assert [s.name for s in new.manifest.scores] == [s.name for s in old.manifest.scores]
    model: Any = load(new, dtype="float32").model
    assert model.lexicon.generic("Paxil") == "paroxetine"


def test_a_release_of_another_task_is_refused(corpus: Path, tiny_bert: str, tmp_path: Path) -> None:
    tagger = tiny_release("ner", tiny_bert, tmp_path)
    with pytest.raises(ReleaseError, match="a release of ner, not of relation"):
        main(data=corpus, output=tmp_path, like=tagger.path)
