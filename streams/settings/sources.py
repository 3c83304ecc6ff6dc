"""Settings of the sources of live posts, and of what happens to a post before the first topic."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from streams.settings.secrets import SettingsWithSecrets


class SourceSettings(SettingsWithSecrets):
    """What the commands `source`, `ingest` and `forget` need in addition."""

    x_token: SecretStr = SecretStr("")
    """Bearer token of X's API, for the source `x`."""

    x_token_file: Path | None = None
    """File that holds the bearer token of X's API; a newline at its end is dropped."""

    mastodon_token: SecretStr = SecretStr("")
    """Access token of the Mastodon servers, for the source `mastodon`. Most servers ask for one."""

    mastodon_token_file: Path | None = None
    """File that holds the access token of the Mastodon servers; a newline at its end is dropped."""

    author_key: SecretStr = SecretStr("")
    """Key of the keyed hash (HMAC-SHA256) that stands for an author, at least 16 characters. Without one the
    field `author` is left out."""

    author_key_file: Path | None = None
    """File that holds the key of the authors' hash; a newline at its end is dropped."""

    author_key_old: SecretStr = SecretStr("")
    """The former key while keys are rotated: it hashes nothing new, but `pvstream forget` still finds the
    reports that it hashed."""

    author_key_old_file: Path | None = None
    """File that holds the former key; a newline at its end is dropped."""

    keep_text: bool = False
    """States a right to keep the texts of sources whose terms forbid it. By default the final record of such
    a report (`aggregate_only`) has no text. Set it alike on all workers."""

    languages: str = Field(default="en", pattern="^[a-z]{2,3}(,[a-z]{2,3})*$")
    """ISO 639-1 codes, with commas, of the languages whose posts pass the filter of a source."""

    terms: Path | None = None
    """File of terms, one a line, with which a post passes the filter of a source without a drug's name."""

    phone_regions: str = Field(default="US,GB", pattern="^([A-Z]{2}(,[A-Z]{2})*)?$")
    """Countries, with commas (ISO 3166-1: GB, not UK), whose national phone numbers are masked; international
    ones always are."""

    duplicate_days: float = Field(default=7.0, gt=0, le=3650)
    """Days for which a repost is recognized after the first sighting."""

    duplicate_reports: int = Field(default=200_000, ge=1000, le=10_000_000)
    """Most texts that are remembered to recognize reposts, the latest ones. Each takes about 1.5 kB, and a
    long one up to 6."""

    @field_validator("phone_regions")
    @classmethod
    def _known_regions(cls, value: str) -> str:
        """Of another code no number would be masked."""
        from phonenumbers import SUPPORTED_REGIONS  # noqa: PLC0415  the default is not checked

        if unknown := sorted(set(filter(None, value.split(","))) - set(SUPPORTED_REGIONS)):
            raise ValueError(f"no phone numbers are known of {', '.join(unknown)}; the codes are ISO 3166-1")
        return value

    @model_validator(mode="after")
    def _keys_that_nobody_guesses(self) -> Self:
        self._require_length("author_key", "author_key_old")
        return self
