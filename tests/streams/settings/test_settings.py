from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr, ValidationError

from streams.credentials.tokens import FileTokens
from streams.settings import SECRETS, Settings


def test_every_setting_has_a_description() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name


def test_brokers_are_addresses_and_release_directories_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PV_BROKER", "kafka://one:9092,two:9093")
    assert Settings().bootstrap == ["one:9092", "two:9093"]
    monkeypatch.setenv("PV_RELEASES", '{"ner": "runs/ner/0123456789ab"}')
    assert Settings().releases == {"ner": Path("runs/ner/0123456789ab")}


@pytest.mark.parametrize("broker", ["localhost:9092", "http://one:9092", "kafka://", ""])
def test_any_other_kind_of_address_is_refused(broker: str) -> None:
    with pytest.raises(ValidationError, match="kafka://host:port"):
        Settings(broker=broker)


@pytest.mark.parametrize("port", ["one:abc", "one:65536", "one:0", "one:-1", "one:", ":1", "[::1", "::1"])
def test_an_address_that_no_client_can_use_is_refused(port: str) -> None:
    for good in ("one", "one:65535", "[::1]:9092", "[::1]"):
        assert Settings(broker=f"kafka://{good}").bootstrap == [good]
    for bad in (f"kafka://{port}", f"kafka://two:9092,{port}", f"kafka://{port},two:9092,"):
        with pytest.raises(ValidationError, match="a port from 1 to 65535"):
            Settings(broker=bad)


@pytest.mark.parametrize(
    "broker",
    ["kafka://user:hidden-word@one:9092", "kafka://one:9092?sig=hidden-word", "kafka://one:9092/hidden-word"],
)
def test_an_address_with_a_user_or_a_query_is_refused_without_quoting_it(broker: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(broker=broker)
    assert "hidden-word" not in refused.value.errors()[0]["msg"]


@pytest.mark.parametrize("prefix", ["a b", "a/", ".a", "__a", "a\n", "ä", "x" * 101])
def test_a_prefix_has_what_names_of_topics_may_have(prefix: str) -> None:
    assert [Settings(prefix=known).prefix for known in ("", "staging.", "team-b_", "9")]
    with pytest.raises(ValidationError):
        Settings(prefix=prefix)


@pytest.mark.parametrize(
    "name", [n for n, field in Settings.model_fields.items() if field.annotation is float]
)
@pytest.mark.parametrize("number", ["inf", "nan", "1e400"])
def test_a_number_is_finite(name: str, number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PV_{name.upper()}", number)
    with pytest.raises(ValidationError, match=name):
        Settings()


@pytest.mark.parametrize(
    "name", [n for n, field in Settings.model_fields.items() if field.annotation in (int, float)]
)
def test_a_number_no_client_or_timer_takes_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PV_{name.upper()}", "9" * 20)
    with pytest.raises(ValidationError, match=f"(?s){name}.*less than or equal to"):
        Settings()


@pytest.mark.parametrize("task", ["NER", "norm", ""])
def test_a_release_for_an_unknown_task_is_refused(task: str) -> None:
    assert Settings(releases={"ner": Path("a")}).releases == {"ner": Path("a")}
    with pytest.raises(ValidationError, match=f"{task!r}: expected ner, acronym"):
        Settings(releases={"ner": Path("a"), task: Path("b")})


@pytest.mark.parametrize("regions", ["UK", "US,UK", "ZZ"])
def test_a_country_of_which_no_phone_number_would_be_masked_is_refused(regions: str) -> None:
    for known in ("", "GB", "US,NL"):
        assert Settings(phone_regions=known).phone_regions == known
    with pytest.raises(ValidationError, match="the codes are ISO 3166-1"):
        Settings(phone_regions=regions)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_may_be_in_a_file_and_loses_one_newline(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    word = "a hidden word of some length"
    for content, secret in ((f"{word}\n", word), (f"{word} \n\n", f"{word} \n"), (f"{word}\r\n", word)):
        file.write_bytes(content.encode())
        given: dict[str, Any] = {f"{name}_file": file}
        settings = Settings(**given)
        assert getattr(settings, name).get_secret_value() == secret
        assert secret not in repr(settings)


@pytest.mark.parametrize("name", ["author_key", "author_key_old"])
def test_a_key_that_is_easily_guessed_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("fifteen letters")
    both: list[dict[str, Any]] = [{name: "fifteen letters"}, {f"{name}_file": tmp_path / "key"}]
    for given in both:
        with pytest.raises(ValidationError, match=f"PV_{name.upper()} must have at least 16") as refused:
            Settings(**given)
        assert "fifteen" not in refused.value.errors()[0]["msg"]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_not_given_twice(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("word-one")
    given: dict[str, Any] = {name: "word-two", f"{name}_file": tmp_path / "secret"}
    with pytest.raises(ValidationError, match=f"PV_{name.upper()} and PV_{name.upper()}_FILE are both set"):
        Settings(**given)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff", "is not UTF-8"),
    ],
)
def test_a_file_without_a_secret_is_an_error(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValidationError, match=f"PV_SASL_PASSWORD_FILE: .*{message}"):
        Settings(sasl_password_file=file)


def test_an_encrypted_private_key_is_opened_with_its_password(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(today).not_valid_after(today + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = serialization.Encoding.PEM
    encrypted = serialization.BestAvailableEncryption(b"word")
    (tmp_path / "cert").write_bytes(certificate.public_bytes(pem))
    (tmp_path / "key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, encrypted))
    (tmp_path / "word").write_text("word\n")
    files: dict[str, Any] = {"ssl_certfile": tmp_path / "cert", "ssl_keyfile": tmp_path / "key"}
    assert (
        Settings(security="SSL", **files, ssl_key_password_file=tmp_path / "word").ssl_context() is not None
    )
    with pytest.raises(ssl.SSLError):
        Settings(security="SSL", **files).ssl_context()


OAUTH: dict[str, Any] = {"security": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
CLIENT: dict[str, Any] = {"oauth_client_id": "a", "oauth_client_secret": SecretStr("hidden-word")}


def test_tokens_come_from_a_file_or_a_server_and_clients_share_the_provider(tmp_path: Path) -> None:
    of_file = Settings(**OAUTH, sasl_token_file=tmp_path / "token")
    assert isinstance(of_file.client()["sasl_oauth_token_provider"], FileTokens)
    of_server = Settings(**OAUTH, **CLIENT, oauth_token_url="https://host/token")
    provider = of_server.client()["sasl_oauth_token_provider"]
    assert provider is of_server.client()["sasl_oauth_token_provider"]
    assert "hidden-word" not in repr(of_server)
    assert Settings().token_provider() is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs either PV_SASL_TOKEN_FILE or PV_OAUTH_TOKEN_URL"),
        ({"sasl_token_file": Path("a"), "oauth_token_url": "https://host/"}, "needs either"),
        ({"oauth_token_url": "https://host/"}, "PV_OAUTH_CLIENT_ID"),
        ({**CLIENT, "oauth_token_url": "http://host/"}, "must be an https URL"),
        ({**CLIENT, "oauth_token_url": "file:///token"}, "must be an https URL"),
    ],
)
def test_an_incomplete_choice_of_tokens_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Settings(**OAUTH, **options)
    for url in ("http://127.0.0.1:8080/token", "http://localhost/token", "http://[::1]/token"):
        assert Settings(**OAUTH, **CLIENT, oauth_token_url=url).oauth_token_url == url, "on this machine"


def test_the_password_is_given_to_the_client_and_not_printed() -> None:
    word = SecretStr("hidden-word")
    chosen = Settings(broker="kafka://one:9092", security="SASL_SSL", sasl_username="u", sasl_password=word)
    client = chosen.client()
    assert client["sasl_plain_password"] == "hidden-word"
    assert client["ssl_context"] is not None
    assert client["sasl_mechanism"] == "SCRAM-SHA-512"
    assert "hidden-word" not in repr(chosen)


@pytest.mark.parametrize("database", ["", " ", "duckdb:///data/events.duckdb", "mysql://user@host/name"])
def test_a_database_that_no_store_can_be_is_refused(database: str) -> None:
    """A URL of another kind would be the path of a new file under the present folder."""
    with pytest.raises(ValidationError, match="neither a path nor a URL"):
        Settings(database=database)
    for known in ("events.duckdb", "/data/events.duckdb", "postgresql://user@host/name", "chdb:///folder"):
        assert Settings(database=known).database == known
