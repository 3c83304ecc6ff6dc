"""Fixtures: the command line with default settings and an empty store, and releases that load at once."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from models.releases.manifest import Release
from tests.streams.cli.command_line import CommandLine
from tests.variants import variant


@dataclass(frozen=True, slots=True)
class Keys:
    """PEM files of a key pair."""

    private: Path
    public: Path


@pytest.fixture(scope="module", autouse=True)
def _tiny_bundled(tiny_bundled: None) -> None:
    """No test here depends on what a model answers."""


@pytest.fixture
def environment(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Default settings, apart from an empty store."""
    for name in list(os.environ):
        if name.startswith("PV_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PV_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("PV_STATE", str(state))
    monkeypatch.setenv("PV_DTYPE", "float32")
    monkeypatch.setenv("COLUMNS", "200")
    return monkeypatch


@pytest.fixture
def pvstream(environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[CommandLine]:
    """The command line; the logging configuration is restored afterwards."""
    loggers = [logging.getLogger(name) for name in (None, "streams", "models")]
    before = [(logger, logger.level) for logger in loggers]
    handlers = [(handler, handler.filters[:], handler.formatter) for handler in loggers[0].handlers]
    yield CommandLine(environment, capsys)
    for logger, level in before:
        logger.setLevel(level)
    for handler, filters, formatter in handlers:
        handler.filters[:] = filters
        handler.setFormatter(formatter)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The bundled summarization release under another version."""
    return variant("summarization", tmp_path_factory.mktemp("made"), "another")


@pytest.fixture
def own(release: Release, tmp_path: Path) -> Path:
    """A copy of the release that a test may change."""
    shutil.copytree(release.path, tmp_path / release.version)
    return tmp_path / release.version


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    key = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return Keys(private, public)
