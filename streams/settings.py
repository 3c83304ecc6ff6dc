"""Settings, read once from the environment by the command line and passed on as an object."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

EMBEDDED = "embedded"


class Settings(BaseSettings):
    """Each field is the environment variable of the same name in capitals with the prefix PV_."""

    model_config = SettingsConfigDict(env_prefix="PV_", use_attribute_docstrings=True)

    broker: str = EMBEDDED
    """Address of the broker: `kafka://host:port,host:port`, or `embedded` for one inside the process."""

    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Security protocol of the connections to the broker."""

    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    """SASL mechanism; used with SASL_PLAINTEXT and SASL_SSL."""

    sasl_username: str = ""
    """SASL user name; used with SASL_PLAINTEXT and SASL_SSL."""

    sasl_password: SecretStr = SecretStr("")
    """SASL password; used with SASL_PLAINTEXT and SASL_SSL."""

    ssl_cafile: Path | None = None
    """PEM file of the certificate authorities to trust; by default those of the system. Used with SSL and
    SASL_SSL."""

    ssl_certfile: Path | None = None
    """PEM file of the client's certificate, if the broker requires one. Used with SSL and SASL_SSL."""

    ssl_keyfile: Path | None = None
    """PEM file of the private key of the client's certificate."""

    replication: int = Field(default=1, ge=1)
    """Replication factor of the topics that pvstream creates. 1 suits a single broker; use 3 on a cluster."""

    releases: dict[str, Path] = {}
    """Release directories by task, as JSON. Such a release replaces the bundled one, and announcements do not
    change it."""

    store: str = "~/.local/share/pvstream/releases"
    """Store of published releases: a directory that all workers can read, or an fsspec URL
    (s3://bucket/releases with the package s3fs installed).
    """

    release_key: Path | None = None
    """PEM file of an Ed25519 public key. If set, every release except the bundled ones must be signed with
    the matching private key."""

    release_bytes: int = Field(default=2 << 30, ge=1 << 20)
    """Largest size of a release in bytes; a larger one is refused before it is copied."""

    release_files: int = Field(default=64, ge=1, le=4096)
    """Largest number of files of a release."""

    state: Path = Path("~/.local/state/pvstream")
    """Folder of this machine in which workers keep the last good releases and the last accepted signed
    announcements. In a container it must be a volume, else both are lost with the container."""

    device: str = "cpu"
    """Device that the models run on: `cpu` or `cuda`."""

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of the encoders; `auto` chooses the fastest one that passes the canary check."""

    threads: int = Field(default=0, ge=0)
    """CPU threads of one inference; 0 uses all processors available to the process."""

    batch: int = Field(default=64, ge=1, le=4096)
    """Largest number of records in a batch. Larger batches group texts of equal length better, but need more
    memory and add latency."""

    batch_characters: int = Field(default=100_000, ge=1000)
    """Largest size of a batch in bytes of text; a record that is larger is a batch of its own. It bounds the
    time of one inference."""

    wait: float = Field(default=0.05, gt=0, le=10)
    """Longest time in seconds that a record waits for its batch to fill; it adds to the latency."""

    max_output_bytes: int = Field(default=1_000_000, ge=1024)
    """Largest output record in bytes; a larger one becomes a dead letter. Must be below the topic's
    max.message.bytes, because the broker would refuse the record at every attempt."""

    http_host: str = "127.0.0.1"
    """Address on which /metrics, /health and /releases are served. The default is reachable from this machine
    only; use 0.0.0.0 in a container."""

    http_port: int = Field(default=8000, ge=0, le=65535)
    """Port of /metrics, /health and /releases; 0 chooses any free port."""

    session_timeout: float = Field(default=10.0, gt=0)
    """Seconds without a heartbeat after which a worker's partitions go to others. Faust's default of 60 would
    leave them idle that long; below 6, which many brokers refuse, a long garbage collection looks like a
    crash."""

    commit_interval: float = Field(default=1.0, gt=0)
    """Seconds between offset commits; a crash repeats the records acknowledged since the last commit."""

    grace: float = Field(default=30.0, gt=0)
    """Seconds that a stopping worker may take to finish the records it has read."""

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
        """The TLS context of the connections to the broker; None without TLS."""
        if "SSL" not in self.security:
            return None
        context = ssl.create_default_context(cafile=str(self.ssl_cafile) if self.ssl_cafile else None)
        if self.ssl_certfile:
            context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile)
        return context

    def client(self) -> dict[str, Any]:
        """Keyword arguments that every aiokafka client gets."""
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
