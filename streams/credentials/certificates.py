"""The TLS context of the connections to the broker, from the files that the settings name."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
