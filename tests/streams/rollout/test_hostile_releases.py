"""Announced releases that are damaged or forged: each is refused with one line, and the live model stays."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from safetensors.torch import load_file, save_file

from models.loading import Loaded
from models.releases.manifest import MANIFEST, version_of
from models.releases.signature import SIGNATURE
from models.releases.store import bundled, describe
from streams.agents.pipeline import stage_named
from streams.records import Announcement
from streams.rollout.handle import Handle
from streams.rollout.opening import load_release
from streams.rollout.reload import Reloader
from streams.settings import Settings

TEXT = "zoloft gave me awful insomnia"


@pytest.fixture(scope="module")
def live() -> Loaded:
    return load_release("ner", None, Settings())


class Forge:
    """A copy of the bundled release that a test damages and puts into a store under its own version."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "forged"
        shutil.copytree(bundled("ner"), self.folder)
        self.manifest: dict[str, Any] = json.loads((self.folder / MANIFEST).read_bytes())
        self.settings = Settings(store=str(root / "store"))

    def declare(self) -> None:
        """Declares the changed files in the manifest, as an attacker would."""
        (self.folder / MANIFEST).unlink()
        declared = describe(self.folder)
        self.manifest["files"] = {name: file.model_dump() for name, file in declared.items()}

    def change_tensors(self, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
        path = self.folder / "head.safetensors"
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path)
        self.declare()

    def put_into_store(self, stored: bytes | None = None) -> str:
        """Stores the release with this manifest, by default its own, and returns the version."""
        stored = json.dumps(self.manifest).encode() if stored is None else stored
        (self.folder / MANIFEST).write_bytes(stored)
        version = version_of(stored)
        shutil.copytree(self.folder, self.root / "store/ner" / version, symlinks=True)
        return version

    def require_signature(self) -> Ed25519PrivateKey:
        """Requires signatures of a new key, which is returned."""
        key = Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (self.root / "key.pem").write_bytes(public)
        self.settings = Settings(store=self.settings.store, release_key=self.root / "key.pem")
        return key


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    return Forge(tmp_path)


async def refusal_of(forge: Forge, live: Loaded, version: str) -> str:
    """Announces the version to a worker's reloader and returns the reason of the refusal."""
    handle = Handle(live)
    reloader = Reloader((stage_named("ner"),), {"ner": handle}, forge.settings)
    reloader._announcements["ner"] = Announcement(
        task="ner", version=version, reason="publish", announced_at=datetime.now(UTC)
    )
    updating = asyncio.create_task(reloader._update_live("ner"))
    reloader._changed["ner"].set()
    try:
        async with asyncio.timeout(30):
            while handle.refused is None and handle.current is live:  # noqa: ASYNC110  the reloader sets no event
                await asyncio.sleep(0.01)
    finally:
        updating.cancel()
        with suppress(asyncio.CancelledError):
            await updating
    assert handle.current is live, "the live model is untouched"
    assert handle.refused is not None
    assert handle.refused.version == version
    assert "\n" not in handle.refused.reason
    assert handle.current.model.predict([TEXT])[0], "and still works"
    return handle.refused.reason


def another_digest(forge: Forge) -> None:
    lexicon = forge.folder / "drugs.tsv"
    lexicon.write_bytes(lexicon.read_bytes().replace(b"sertraline", b"sertralinE"))


def outside(forge: Forge) -> None:
    forge.manifest["files"]["../../../key.pem"] = {"sha256": "0" * 64, "size": 3}


def pickled(forge: Forge) -> None:
    (forge.folder / "head.safetensors").write_bytes(pickle.dumps({"weights": [1.0] * 100}))
    forge.declare()


def truncated(forge: Forge) -> None:
    path = forge.folder / "head.safetensors"
    path.write_bytes(path.read_bytes()[:-64])
    forge.declare()


def not_finite(forge: Forge) -> None:
    def damage(tensors: dict[str, torch.Tensor]) -> None:
        next(iter(tensors.values())).view(-1)[0] = torch.nan

    forge.change_tensors(damage)


def of_another_shape(forge: Forge) -> None:
    forge.change_tensors(lambda tensors: tensors.update({n: torch.cat([t, t]) for n, t in tensors.items()}))


def with_other_answers(forge: Forge) -> None:
    forge.change_tensors(lambda tensors: tensors.update({n: -t for n, t in tensors.items()}))


def for_another_task(forge: Forge) -> None:
    forge.manifest["task"] = "relation"


def of_another_base(forge: Forge) -> None:
    forge.manifest["base_sha256"] = "0" * 64


def unsigned(forge: Forge) -> None:
    forge.require_signature()


def signed_by_another_key(forge: Forge) -> None:
    forge.require_signature()
    stored = json.dumps(forge.manifest).encode()
    (forge.folder / SIGNATURE).write_bytes(Ed25519PrivateKey.generate().sign(stored))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (another_digest, "sha256"),
        (outside, "not a plain file name"),
        (pickled, "not a safetensors file"),
        (truncated, "head.safetensors"),
        (not_finite, "not finite"),
        (of_another_shape, "size mismatch"),
        (with_other_answers, "canary"),
        (for_another_task, "for relation, not for ner"),
        (of_another_base, "base"),
        (unsigned, "not signed"),
        (signed_by_another_key, "signature"),
    ],
)
async def test_a_damaged_release(
    forge: Forge, live: Loaded, damage: Callable[[Forge], None], reason: str
) -> None:
    damage(forge)
    assert reason in await refusal_of(forge, live, forge.put_into_store())


@pytest.mark.parametrize("stored", [b"", b"[" * 100_000])
async def test_a_manifest_that_is_not_json(forge: Forge, live: Loaded, stored: bytes) -> None:
    assert "manifest.json" in await refusal_of(forge, live, forge.put_into_store(stored))


async def test_a_manifest_that_is_not_the_announced_one(forge: Forge, live: Loaded) -> None:
    version = forge.put_into_store()
    other = "0123456789ab"
    (forge.root / "store/ner" / version).rename(forge.root / "store/ner" / other)
    assert f"that of {version}" in await refusal_of(forge, live, other)


async def test_the_same_release_without_damage_is_loaded(forge: Forge, live: Loaded) -> None:
    key = forge.require_signature()
    forge.manifest["configuration"]["note"] = "sound"
    stored = json.dumps(forge.manifest).encode()
    (forge.folder / SIGNATURE).write_bytes(key.sign(stored))
    version = forge.put_into_store(stored)
    assert load_release("ner", version, forge.settings).version == version
