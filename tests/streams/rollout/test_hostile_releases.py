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


async def test_a_file_with_another_digest(forge: Forge, live: Loaded) -> None:
    lexicon = forge.folder / "drugs.tsv"
    lexicon.write_bytes(lexicon.read_bytes().replace(b"sertraline", b"sertralinE"))
    assert "sha256" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_missing_file(forge: Forge, live: Loaded) -> None:
    (forge.folder / "drugs.tsv").unlink()
    assert "drugs.tsv is missing" in await refusal_of(forge, live, forge.put_into_store())


async def test_an_undeclared_file(forge: Forge, live: Loaded) -> None:
    (forge.folder / "more.json").write_text("{}")
    assert "more.json is not declared" in await refusal_of(forge, live, forge.put_into_store())


@pytest.mark.parametrize("name", ["../../../key.pem", "/etc/hostname", "a/../../b.json", "sub/file.json"])
async def test_a_path_outside_of_the_release(forge: Forge, live: Loaded, name: str) -> None:
    forge.manifest["files"][name] = {"sha256": "0" * 64, "size": 3}
    assert "not a plain file name" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_symbolic_link(forge: Forge, live: Loaded) -> None:
    outside = forge.root / "outside.tsv"
    (forge.folder / "drugs.tsv").rename(outside)
    (forge.folder / "drugs.tsv").symlink_to(outside)
    assert "not a regular file" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_pickle_under_the_name_of_safetensors(forge: Forge, live: Loaded) -> None:
    (forge.folder / "head.safetensors").write_bytes(pickle.dumps({"weights": [1.0] * 100}))
    forge.declare()
    assert "not a safetensors file" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_pickle_under_its_own_name(forge: Forge, live: Loaded) -> None:
    (forge.folder / "head.pkl").write_bytes(pickle.dumps({}))
    forge.declare()
    assert ".pkl are not allowed" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_truncated_tensor(forge: Forge, live: Loaded) -> None:
    path = forge.folder / "head.safetensors"
    path.write_bytes(path.read_bytes()[:-64])
    forge.declare()
    assert "head.safetensors" in await refusal_of(forge, live, forge.put_into_store())


async def test_weights_that_are_not_finite(forge: Forge, live: Loaded) -> None:
    def damage(tensors: dict[str, torch.Tensor]) -> None:
        next(iter(tensors.values())).view(-1)[0] = torch.nan

    forge.change_tensors(damage)
    assert "not finite" in await refusal_of(forge, live, forge.put_into_store())


async def test_weights_of_another_shape(forge: Forge, live: Loaded) -> None:
    def damage(tensors: dict[str, torch.Tensor]) -> None:
        tensors.update({name: torch.cat([t, t]) for name, t in tensors.items()})

    forge.change_tensors(damage)
    assert "size mismatch" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_header_that_is_too_large(forge: Forge, live: Loaded) -> None:
    header = b"{" + b" " * (90 << 20) + b"}"
    content = len(header).to_bytes(8, "little") + header
    (forge.folder / "head.safetensors").write_bytes(content)
    forge.declare()
    assert "header of" in await refusal_of(forge, live, forge.put_into_store())


@pytest.mark.parametrize("stored", [b"", b"not json", b"[]", b"\xff\xfe", b"[" * 100_000])
async def test_a_manifest_that_is_not_json(forge: Forge, live: Loaded, stored: bytes) -> None:
    assert "manifest.json" in await refusal_of(forge, live, forge.put_into_store(stored))


async def test_a_release_for_another_task(forge: Forge, live: Loaded) -> None:
    forge.manifest["task"] = "relation"
    assert "for relation, not for ner" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_model_that_fails_its_canary_check(forge: Forge, live: Loaded) -> None:
    def damage(tensors: dict[str, torch.Tensor]) -> None:
        tensors.update({name: -t for name, t in tensors.items()})

    forge.change_tensors(damage)
    assert "canary" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_base_model_that_is_not_the_declared_one(forge: Forge, live: Loaded) -> None:
    forge.manifest["base_sha256"] = "0" * 64
    assert "base" in await refusal_of(forge, live, forge.put_into_store())


async def test_a_signature_of_another_key(forge: Forge, live: Loaded) -> None:
    forge.require_signature()
    stored = json.dumps(forge.manifest).encode()
    (forge.folder / SIGNATURE).write_bytes(Ed25519PrivateKey.generate().sign(stored))
    assert "signature" in await refusal_of(forge, live, forge.put_into_store(stored))


async def test_a_missing_signature_when_one_is_required(forge: Forge, live: Loaded) -> None:
    forge.require_signature()
    assert "not signed" in await refusal_of(forge, live, forge.put_into_store())


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
