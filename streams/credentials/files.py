"""What is read from files that the settings name: secrets, and the TLS context of the connections."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: A secret is a password or a token; a larger file is a mistake.
MAX_BYTES = 64 * 1024


def read_secret(path: Path) -> str:
    """The content of a file without the newline at its end; raises ValueError without quoting the content."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise ValueError(f"{path} has more than {MAX_BYTES} bytes")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret:
        raise ValueError(f"{path} is empty")
    return secret


_CERTIFICATE = (
    "it must hold a certificate in PEM, PV_SSL_KEYFILE its key, and PV_SSL_KEY_PASSWORD the password of the "
    "key"
)


def tls_context(
    authorities: Path | None, certificate: Path | None, key: Path | None, password: str
) -> ssl.SSLContext:
    """The context that trusts `authorities` (None: those of the system) and shows `certificate`, if any.

    Raises OSError, of which ssl.SSLError is a kind, for a file that cannot be used, with its setting.
    """
    if key and not certificate:
        raise OSError(f"PV_SSL_KEYFILE: {key}: it is of no use without its certificate, PV_SSL_CERTFILE")
    with _named("PV_SSL_CAFILE", authorities, "it must hold certificates in PEM"):
        context = ssl.create_default_context(cafile=str(authorities) if authorities else None)
    if certificate:
        for setting, path in (("PV_SSL_CERTFILE", certificate), ("PV_SSL_KEYFILE", key)):
            with _named(setting, path):
                _check_readable(path)
        with _named("PV_SSL_CERTFILE", certificate, _CERTIFICATE):
            # Given as a function it is asked for only if the key is encrypted, and never on the terminal.
            context.load_cert_chain(certificate, key, lambda: password)
    return context


def _check_readable(path: Path | None) -> None:
    """Raises OSError; an error of the certificate and its key does not say which file it is of."""
    if path is not None:
        with path.open("rb") as file:
            file.read(1)


@contextmanager
def _named(setting: str, path: Path | None, hint: str = "") -> Iterator[None]:
    """Adds the setting and the file to the errors of the block, and to those of their content the hint."""
    place = f"{setting}: {path}" if path else setting
    try:
        yield
    except ssl.SSLError as error:
        raise ssl.SSLError(error.errno, f"{place}: {error}; {hint}") from None
    except OSError as error:
        raise type(error)(f"{place}: {error.strerror or error}") from None
