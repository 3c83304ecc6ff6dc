from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from streams.credentials.certificates import tls_context
from tests.streams.cli.command_line import CommandLine


def files(**given: Path) -> dict[str, Any]:
    return {"authorities": None, "certificate": None, "key": None, "password": "", **given}


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"authorities": "no"}, "PV_SSL_CAFILE"),
        ({"certificate": "no"}, "PV_SSL_CERTFILE"),
        ({"certificate": "cert", "key": "no"}, "PV_SSL_KEYFILE"),
    ],
)
def test_the_file_that_is_missing_is_named_with_its_setting(
    tmp_path: Path, given: dict[str, str], setting: str
) -> None:
    (tmp_path / "cert").write_text("a certificate")
    with pytest.raises(FileNotFoundError, match=f"^{setting}: {tmp_path}/no: No such file"):
        tls_context(**files(**{name: tmp_path / file for name, file in given.items()}))


@pytest.mark.parametrize("content", [b"", b"no certificate\n", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\n"])
def test_a_file_that_is_no_certificate_is_named_with_its_setting(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pem").write_bytes(content)
    with pytest.raises(ssl.SSLError, match=f"^PV_SSL_CAFILE: {tmp_path}/pem: "):
        tls_context(**files(authorities=tmp_path / "pem"))
    with pytest.raises(ssl.SSLError, match=f"^PV_SSL_CERTFILE: {tmp_path}/pem: .*PV_SSL_KEY_PASSWORD"):
        tls_context(**files(certificate=tmp_path / "pem"))


def test_a_command_names_the_setting_of_a_file_that_it_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pvstream = CommandLine(monkeypatch, capsys)
    pvstream.set("PV_BROKER", "kafka://127.0.0.1:1")
    pvstream.set("PV_SECURITY", "SSL")
    pvstream.set("PV_SSL_CAFILE", str(tmp_path / "no.pem"))
    answer = pvstream("topics")
    assert answer.code == 1
    assert answer.error_line == f"error: PV_SSL_CAFILE: {tmp_path}/no.pem: No such file or directory"


def test_a_key_without_its_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"^PV_SSL_KEYFILE: .*/key: .*PV_SSL_CERTFILE$"):
        tls_context(**files(key=tmp_path / "key"))
    assert tls_context(**files()).verify_mode is ssl.CERT_REQUIRED, "the authorities of the system"
