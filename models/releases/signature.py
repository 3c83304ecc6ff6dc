"""An optional Ed25519 signature over a manifest, and by the digests in it over the whole release."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from models.releases.manifest import ReleaseError

#: A file next to the manifest, of 64 bytes.
SIGNATURE = "manifest.sig"
SIGNATURE_BYTES = 64


def read_public_key(path: Path) -> Ed25519PublicKey:
    """The key in a PEM file (`openssl pkey -pubout`); raises ReleaseError."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise ReleaseError(f"no public key in {path}: {error}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ReleaseError(f"{path} holds no Ed25519 key")
    return key


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a PEM file (`openssl genpkey -algorithm ed25519`); raises ReleaseError."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ReleaseError(f"no private key in {path}: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ReleaseError(f"{path} holds no Ed25519 key")
    return key


def check_signature(
    stored_manifest: bytes, signature: bytes | None, key: Ed25519PublicKey, where: str
) -> None:
    """Raises ReleaseError unless `signature` is that of the key's owner over exactly these bytes."""
    if signature is None:
        raise ReleaseError(f"{where}: not signed, and a signature is required")
    try:
        key.verify(signature, stored_manifest)
    except InvalidSignature:
        raise ReleaseError(f"{where}: the signature is not by the required key over this manifest") from None
