"""Settings whose secrets may be given as files."""

from __future__ import annotations

from typing import Self

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from streams.credentials.files import read_secret

#: Settings that may also be given as a file, by the variable of the same name with _FILE.
SECRETS = (
    "sasl_password",
    "ssl_key_password",
    "oauth_client_secret",
    "author_key",
    "author_key_old",
    "database_password",
    "x_token",
    "mastodon_token",
    "web_token",
    "web_reader_token",
)
#: Minimum length in characters. Handles are public, so an attacker who guesses the key finds the handle of
#: every hash.
KEY_LENGTH = 16


class SettingsWithSecrets(BaseSettings):
    """Reads the secrets of which a file is named."""

    # An endless time is none that a thread or a timer can wait for.
    model_config = SettingsConfigDict(env_prefix="PV_", use_attribute_docstrings=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _read_secrets(self) -> Self:
        for name in SECRETS:
            path = getattr(self, f"{name}_file", None)
            if path is None:
                continue
            if name in self.model_fields_set:
                variable = f"PV_{name.upper()}"
                raise ValueError(f"{variable} and {variable}_FILE are both set; one of them is enough")
            try:
                setattr(self, name, SecretStr(read_secret(path)))
            except ValueError as error:
                raise ValueError(f"PV_{name.upper()}_FILE: {error}") from None
            self.model_fields_set.discard(name)
        return self

    def _require_length(self, *secrets: str) -> None:
        """Raises ValueError for a secret that is set and so short that it could be guessed."""
        for name in secrets:
            if 0 < len(getattr(self, name)) < KEY_LENGTH:
                raise ValueError(f"PV_{name.upper()} must have at least {KEY_LENGTH} characters")
