"""Signatures: where a key is required, only releases signed by its owner are opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from models.releases.manifest import MANIFEST, Release, ReleaseError
from models.releases.signature import (
    SIGNATURE,
    SIGNATURE_BYTES,
    check_signature,
    read_private_key,
    read_public_key,
)
from models.releases.store import copy, open_release, read_signature, sign
from tests.models.releases.small_release import rewrite
from tests.models.releases.stores import KEY as OWNER
from tests.models.releases.stores import power_cut, refusal

STRANGER = ed25519.Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)


def private_pem(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey, password: bytes = b"") -> bytes:
    secret = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)


def public_pem(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_a_release_signed_by_the_owner_is_opened_with_the_owners_key(release: Release) -> None:
    before = (release.path / MANIFEST).read_bytes()
    sign(release, OWNER)
    assert (release.path / MANIFEST).read_bytes() == before
    assert open_release(release.path, OWNER.public_key()).version == release.version
    signature = read_signature(release.path)
    assert signature is not None
    assert len(signature) == SIGNATURE_BYTES


UNKNOWN = "the signature is not by the required key over this manifest"


@pytest.mark.parametrize(
    ("signer", "kind", "drugs", "reason"),
    [
        (None, None, None, "not signed, and a signature is required"),
        (STRANGER, None, None, UNKNOWN),
        (OWNER, "another", None, UNKNOWN),
        (OWNER, None, b"name\tgenerix\n", "drugs.tsv does not have the declared sha256"),
    ],
)
def test_what_the_owner_has_not_signed_is_refused_where_a_key_is_required(
    signer: ed25519.Ed25519PrivateKey | None,
    kind: str | None,
    drugs: bytes | None,
    reason: str,
    release: Release,
) -> None:
    if signer:
        sign(release, signer)
    if kind:
        rewrite(release.path, kind=kind)
    if drugs:
        (release.path / "drugs.tsv").write_bytes(drugs)
    message = refusal(ReleaseError, lambda: open_release(release.path, OWNER.public_key()))
    assert message == f"{release.version}: {reason}"


@pytest.mark.parametrize("length", [0, 1, SIGNATURE_BYTES - 1, SIGNATURE_BYTES + 1])
def test_a_signature_of_another_length_is_refused(length: int, release: Release) -> None:
    sign(release, OWNER)
    content = ((release.path / SIGNATURE).read_bytes() + b"\0")[:length]
    (release.path / SIGNATURE).write_bytes(content)
    message = refusal(ReleaseError, lambda: open_release(release.path, OWNER.public_key()))
    assert message == f"{release.version}: {SIGNATURE} is not a signature"
    # The check by itself, for bytes read from another place.
    stored = (release.path / MANIFEST).read_bytes()
    assert "required key" in refusal(
        ReleaseError, lambda: check_signature(stored, content, OWNER.public_key(), "x")
    )


def _link(path: Path) -> None:
    (path.parent.parent / "elsewhere").write_bytes(b"x" * SIGNATURE_BYTES)
    path.symlink_to(path.parent.parent / "elsewhere")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, _link])
def test_a_signature_that_is_no_file_is_refused(make: Callable[[Path], None], release: Release) -> None:
    make(release.path / SIGNATURE)
    message = refusal(ReleaseError, lambda: open_release(release.path, OWNER.public_key()))
    assert message == f"{release.version}: {SIGNATURE} is not a signature"


def test_a_second_signature_replaces_the_first_and_none_counts_without_a_key(release: Release) -> None:
    sign(release, STRANGER)
    assert open_release(release.path).version == release.version
    (release.path / SIGNATURE).write_bytes(b"no signature")
    assert open_release(release.path).version == release.version
    sign(release, STRANGER)
    sign(release, OWNER)
    assert open_release(release.path, OWNER.public_key()).version == release.version
    with pytest.raises(ReleaseError):
        open_release(release.path, STRANGER.public_key())
    assert [p.name for p in release.path.parent.iterdir()] == [release.version]


@pytest.mark.parametrize("signed_before", [False, True])
def test_a_power_cut_while_signing_leaves_the_release_as_it_was(
    signed_before: bool, release: Release
) -> None:
    if signed_before:
        sign(release, OWNER)

    with power_cut(), pytest.raises(OSError, match="power cut"):
        sign(release, STRANGER)
    assert open_release(release.path).version == release.version
    if signed_before:
        assert open_release(release.path, OWNER.public_key()).version == release.version
    sign(release, OWNER)
    assert open_release(release.path, OWNER.public_key()).version == release.version


def test_a_signature_is_added_to_a_copy_that_lacks_one_and_stays(release: Release, tmp_path: Path) -> None:
    copied = copy(release, tmp_path / "other")
    assert read_signature(copied.path) is None
    for signed in (True, False):
        if signed:
            sign(release, OWNER)
        else:
            (release.path / SIGNATURE).unlink()
        copy(release, tmp_path / "other")
        assert open_release(copied.path, OWNER.public_key()).version == release.version


def test_pem_keys_sign_and_a_manifest_that_changed_is_not_signed(release: Release, tmp_path: Path) -> None:
    (tmp_path / "private.pem").write_bytes(private_pem(OWNER))
    (tmp_path / "public.pem").write_bytes(public_pem(OWNER))
    sign(release, read_private_key(tmp_path / "private.pem"))
    assert open_release(release.path, read_public_key(tmp_path / "public.pem")).version == release.version
    before = read_signature(release.path)
    rewrite(release.path, kind="another")
    assert "has changed since it was verified" in refusal(ReleaseError, lambda: sign(release, OWNER))
    assert read_signature(release.path) == before


OTHER_KIND = ec.generate_private_key(ec.SECP256R1())


READERS = (read_public_key, read_private_key)
BAD = (
    b"", b"not PEM", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
    b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", b"-----BEGIN PUBLIC KEY-----\n",
    b"\xff\xfe\x00", b"\x01" * 32,
)  # fmt: skip


@pytest.mark.parametrize(
    ("content", "read", "message"),
    [
        *((content, read, "key.pem") for content in BAD for read in READERS),
        *((None, read, "No such file") for read in READERS),
        (private_pem(OTHER_KIND), read_private_key, "holds no Ed25519 key"),
        (public_pem(OTHER_KIND), read_public_key, "holds no Ed25519 key"),
        (private_pem(OWNER), read_public_key, "no public key in"),
        (public_pem(OWNER), read_private_key, "no private key in"),
        (private_pem(OWNER, b"password"), read_private_key, "no private key in"),
    ],
)
def test_a_file_that_is_no_key_or_another_kind_of_key_is_refused(
    content: bytes | None, read: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "key.pem").write_bytes(content)
    assert message in refusal(ReleaseError, lambda: read(tmp_path / "key.pem"))
    assert "directory" in refusal(ReleaseError, lambda: read(tmp_path))
