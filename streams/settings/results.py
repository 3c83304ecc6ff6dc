"""Settings of the database of results, and of the page that shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from streams.settings.secrets import SettingsWithSecrets

#: Beginnings of the URL of a database that is no file.
SCHEMES = ("postgresql", "postgres", "clickhouse", "clickhouses", "chdb")


class ResultSettings(SettingsWithSecrets):
    """What the commands `store` and `web` need in addition."""

    database: str = "~/.local/share/pvstream/events.duckdb"
    """Database of `pvstream store`: a DuckDB file, or the URL without a password of PostgreSQL,
    `postgresql://user@host/name`, or ClickHouse, `clickhouse://user@host/name` or, with TLS, `clickhouses://`."""

    database_password: SecretStr = SecretStr("")
    """Password of the database's user."""

    database_password_file: Path | None = None
    """File that holds the password of the database's user; a newline at its end is dropped."""

    web_host: str = "127.0.0.1"
    """Address on which `pvstream web` serves its page. Another than this machine's needs PV_WEB_TOKEN or
    PV_WEB_USER_HEADER; put a proxy with TLS in front of it."""

    web_port: int = Field(default=8080, ge=0, le=65535)
    """Port of the page; 0 chooses any free port."""

    web_token: SecretStr = SecretStr("")
    """Token with which reviewers sign in, at least 16 characters."""

    web_token_file: Path | None = None
    """File that holds the token of reviewers; a newline at its end is dropped."""

    web_reader_token: SecretStr = SecretStr("")
    """Token with which those sign in who may only read, at least 16 characters."""

    web_reader_token_file: Path | None = None
    """File that holds the token of readers; a newline at its end is dropped."""

    web_user_header: str = Field(default="", pattern="^[A-Za-z0-9-]*$")
    """Header in which a reverse proxy names the user that it has signed in. Requests that do not come from
    PV_WEB_PROXIES are then refused."""

    web_proxies: str = "127.0.0.1,::1"
    """Addresses, with commas, of the reverse proxies that are trusted with PV_WEB_USER_HEADER."""

    web_reviewers: str = ""
    """Users, with commas, who may review when PV_WEB_USER_HEADER names them; others may read."""

    web_texts: bool = True
    """Whether the page shows texts; without them it shows codes only."""

    @field_validator("database")
    @classmethod
    def _without_password(cls, value: str) -> str:
        if "://" in value and (urlsplit(value).password or "password=" in value):
            raise ValueError("a password belongs in PV_DATABASE_PASSWORD_FILE")
        scheme, separator, _ = value.partition("://")
        if not value.strip() or (separator and scheme not in SCHEMES):
            raise ValueError(f"neither a path nor a URL that begins with {', '.join(SCHEMES)}")
        return value

    @model_validator(mode="after")
    def _tokens_that_nobody_guesses(self) -> Self:
        self._require_length("web_token", "web_reader_token")
        return self
