"""Settings, read once from PV_* by the command line and handed down."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

EMBEDDED = "embedded"


class Settings(BaseSettings):
    """Every field is an environment variable with the prefix PV_."""

    model_config = SettingsConfigDict(env_prefix="PV_", use_attribute_docstrings=True)

    broker: str = EMBEDDED
    """`embedded`, or `kafka://host:port,host:port`."""

    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """How to speak to the broker."""

    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """With SASL_*: the mechanism."""

    sasl_username: str = ""
    """With SASL_*: the user."""

    sasl_password: SecretStr = SecretStr("")
    """With SASL_*: the password."""

    ssl_cafile: Path | None = None
    """With *SSL: certificates to trust instead of the system's."""

    ssl_certfile: Path | None = None
    """With *SSL: the client's own certificate, when the broker wants one."""

    ssl_keyfile: Path | None = None
    """With *SSL: the key of that certificate."""

    replication: int = Field(default=1, ge=1)
    """Copies of each created topic; 3 on a real cluster."""

    releases: dict[str, Path] = {}
    """Task to release directory, for tasks that shall not use the bundled release, as JSON."""

    store: str = "~/.local/share/pvstream/releases"
    """Where published releases are: a directory that all workers see, or an fsspec URL (s3://bucket/releases
    with the package s3fs installed)."""

    release_key: Path | None = None
    """PEM file with an Ed25519 public key: then every release that did not come with the code must be signed
    with its private key."""

    device: str = "cpu"
    """`cpu` or `cuda`."""

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of the encoders; `auto` takes the fastest whose canary answers are right."""

    threads: int = Field(default=0, ge=0)
    """Threads of one inference; 0: as many as this process has processors."""

    batch: int = Field(default=64, ge=1, le=4096)
    """Records in a batch at most. More gives the length grouping more to work with, and costs memory and
    latency.
    """

    wait: float = Field(default=0.05, gt=0, le=10)
    """Seconds a record may wait for company."""

    max_output_bytes: int = Field(default=1_000_000, ge=1024)
    """A larger output becomes a dead letter: the broker would refuse it, forever. Keep below
    max.message.bytes.
    """

    http_host: str = "127.0.0.1"
    """Address of /metrics and /health; 0.0.0.0 in a container."""

    http_port: int = Field(default=8000, ge=0, le=65535)
    """0: any free port."""

    session_timeout: float = Field(default=10.0, gt=0)
    """Seconds until a dead worker's partitions go to others. Faust's 60 leaves them idle that long; under 6,
    which
    many brokers refuse, a long garbage collection looks like a death."""

    commit_interval: float = Field(default=1.0, gt=0)
    """Seconds between commits: what was acked since the last one is repeated after a kill."""

    grace: float = Field(default=30.0, gt=0)
    """Seconds that a stopping worker may take to finish what it took."""

    @field_validator("broker")
    @classmethod
    def _known_scheme(cls, value: str) -> str:
        if value != EMBEDDED and (
            not value.startswith("kafka://") or not value.removeprefix("kafka://").strip(",")
        ):
            raise ValueError("must be `embedded` or kafka://host:port,...")
        return value

    @property
    def bootstrap(self) -> list[str]:
        """host:port of each broker."""
        return [b.removeprefix("kafka://") for b in self.broker.split(",") if b]

    def ssl_context(self) -> ssl.SSLContext | None:
        if "SSL" not in self.security:
            return None
        context = ssl.create_default_context(cafile=str(self.ssl_cafile) if self.ssl_cafile else None)
        if self.ssl_certfile:
            context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile)
        return context

    def client(self) -> dict[str, Any]:
        """Arguments of every aiokafka client."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.security,
            "ssl_context": self.ssl_context(),
        }
        if self.security.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.sasl_username,
                "sasl_plain_password": self.sasl_password.get_secret_value(),
            }
        return options
