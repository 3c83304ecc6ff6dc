"""Settings of the connections to the broker, of the topics, and of workers and their models."""

from __future__ import annotations

import ipaddress
import re
import ssl
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from models.types import RELEASED
from streams.credentials.files import tls_context
from streams.settings.secrets import SettingsWithSecrets

EMBEDDED = "embedded"
OAUTH = "OAUTHBEARER"
_BROKERS = re.compile(r"kafka://[^/?#@\s,]+(,(kafka://)?[^/?#@\s,]+)*,?")
_ADDRESS = re.compile(r"(?:\[[^\[\]]+\]|[^:\[\]]+)(?::0*([0-9]{1,5}))?")
LAST_PORT = 65535
#: Seconds: the longest time that a setting may give. Timers and the protocol of Kafka cannot take any.
DAY = 86_400


class PipelineSettings(SettingsWithSecrets):
    """What stages and their clients need."""

    broker: str = EMBEDDED
    """Address of the broker: `kafka://host:port,host:port`, or `embedded` for one inside the process. It has
    no user and no password."""

    security: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Security protocol of the connections to the broker."""

    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = "SCRAM-SHA-512"
    """SASL mechanism; used with SASL_PLAINTEXT and SASL_SSL."""

    sasl_username: str = ""
    """SASL user name; used with SASL_PLAINTEXT and SASL_SSL."""

    sasl_password: SecretStr = SecretStr("")
    """SASL password; used with SASL_PLAINTEXT and SASL_SSL."""

    sasl_password_file: Path | None = None
    """File that holds the SASL password; a newline at its end is dropped."""

    sasl_token_file: Path | None = None
    """File that holds an access token for OAUTHBEARER. It is read for every connection, so that another
    process can replace the token."""

    oauth_token_url: str = ""
    """Token server for OAUTHBEARER, which is asked with the client-credentials grant. `https`, or `http` on
    this machine. Its certificate is checked against the authorities of the system."""

    oauth_client_id: str = ""
    """Client id for the token server."""

    oauth_client_secret: SecretStr = SecretStr("")
    """Client secret for the token server."""

    oauth_client_secret_file: Path | None = None
    """File that holds the client secret; a newline at its end is dropped."""

    oauth_scope: str = ""
    """Scope that the token server is asked for, if it needs one."""

    ssl_cafile: Path | None = None
    """PEM file of the certificate authorities to trust; by default those of the system. Used with SSL and
    SASL_SSL."""

    ssl_certfile: Path | None = None
    """PEM file of the client's certificate, if the broker requires one. Used with SSL and SASL_SSL."""

    ssl_keyfile: Path | None = None
    """PEM file of the private key of the client's certificate."""

    ssl_key_password: SecretStr = SecretStr("")
    """Password of an encrypted private key."""

    ssl_key_password_file: Path | None = None
    """File that holds the password of the private key; a newline at its end is dropped."""

    prefix: str = Field(default="", max_length=100, pattern="^([A-Za-z0-9][A-Za-z0-9._-]*)?$")
    """Put in front of the name of every topic and consumer group, for example `staging.`, so that several
    pipelines can share a cluster. Letters, digits, `.`, `_` and `-`."""

    partitions: int = Field(default=4, ge=1, le=100_000)
    """Partitions of the topics that pvstream creates, and so the most workers of a stage. Topics of dead
    letters and `releases` have one."""

    replication: int = Field(default=1, ge=1, le=32_767)
    """Replication factor of the topics that pvstream creates. 1 suits a single broker; use 3 on a cluster."""

    releases: dict[str, Path] = Field(default={})
    """Release directories by task, as JSON. Such a release replaces the bundled one, and announcements do not
    change it."""

    store: str = "~/.local/share/pvstream/releases"
    """Store of announced releases: a directory that all workers can read, or an fsspec URL
    (s3://bucket/releases with the package s3fs installed).
    """

    store_deadline: float = Field(default=60.0, ge=1, le=DAY)
    """Seconds that copying a release from the store may take. After that the store counts as unavailable: a
    worker that starts takes a release that it has kept, and one that runs tries again later."""

    release_key: Path | None = None
    """PEM file of an Ed25519 public key. If set, every release except the bundled ones must be signed with
    the matching private key."""

    release_bytes: int = Field(default=2 << 30, ge=1 << 20, le=1 << 40)
    """Largest size of a release in bytes; a larger one is refused before it is copied."""

    release_files: int = Field(default=64, ge=1, le=4096)
    """Largest number of files of a release."""

    state: Path = Path("~/.local/state/pvstream")
    """Folder of this machine in which workers keep the last good releases, the last accepted signed
    announcements, and what is in inference. In a container it must be a volume, else all are lost with it."""

    device: str = "cpu"
    """Device that the models run on: `cpu` or `cuda`."""

    post_threshold: float | None = Field(default=None, ge=0, le=1)
    """Probability that a sentence of a post reports an adverse event, below which the tagger gives no events
    for it; by default that of the release, whose manifest states what each would do. Set it alike on all
    workers of the stage: a record does not state it."""

    judge: Literal["auto", "off", "on"] = "auto"
    """Whether the stage `ner` lets a judge read again the texts in which its tagger finds an effect, or of
    which a drug is stated: `auto` where there is a release of one and its base is installed; with `on` the
    stage does not start without. Records state the judge."""

    cache: Path = Path("~/.cache/pvstream")
    """Folder in which the base of a judge is put together once, 440 MB, from the packages with its parts."""

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number format of the encoders; `auto` chooses the fastest one that passes the canary check."""

    workers: int = Field(default=0, ge=0, le=64)
    """Batches that a process computes at once, each in a thread of its own; 0: one for each processor that it
    may use, as far as its memory allows, at most 8. With PV_DEVICE=cuda there is one."""

    threads: int = Field(default=0, ge=0, le=1024)
    """CPU threads of one inference; 0 shares the processors among PV_WORKERS, which gives one."""

    batch: int = Field(default=64, ge=1, le=4096)
    """Largest number of records in a batch. Larger batches group texts of equal length better, but need more
    memory and add latency."""

    batch_characters: int = Field(default=32_000, ge=1000, le=1_000_000_000)
    """Most characters of text in a batch, which bounds the time of one inference. A text with more than a
    quarter of it is a batch of its own, so that shorter ones do not wait for it."""

    wait: float = Field(default=0.05, gt=0, le=10)
    """Longest time in seconds that a record waits for its batch to fill; it adds to the latency."""

    inference_deadline: float = Field(default=120.0, ge=1, le=DAY)
    """Seconds that the inference of one batch may take, and that the event loop may stand still. After that
    /health/live fails and the process ends."""

    drift_sample: float = Field(default=0.01, ge=0, le=1)
    """Share of the records of each stage that are compared with the texts that its release was made with
    (metrics `pv_drift_*`). Each of them is encoded once more; 0 turns the comparison off."""

    max_output_bytes: int = Field(default=1_000_000, ge=1024, le=1 << 30)
    """Largest output record in bytes; a larger one becomes a dead letter. Must be below the topic's
    max.message.bytes."""

    http_host: str = "127.0.0.1"
    """Address on which /metrics, /health and /releases are served. The default is reachable from this machine
    only; use 0.0.0.0 in a container."""

    http_port: int = Field(default=8000, ge=0, le=65535)
    """Port of /metrics, /health and /releases; 0 chooses any free port."""

    session_timeout: float = Field(default=10.0, gt=0, le=DAY)
    """Seconds without a heartbeat after which a worker's partitions go to others. Many brokers refuse less
    than 6."""

    instance: str = Field(default="", max_length=200, pattern="^[A-Za-z0-9._-]*$")
    """Name of this worker among those of its stage, for static membership; no two may have the same. Empty:
    the partitions of a worker that stops go to others at once."""

    commit_interval: float = Field(default=1.0, gt=0, le=DAY)
    """Seconds between offset commits; a crash repeats the records acknowledged since the last commit."""

    grace: float = Field(default=30.0, gt=0, le=DAY)
    """Seconds that a stopping worker may take to finish the records it has read."""

    @field_validator("broker")
    @classmethod
    def _known_scheme(cls, value: str) -> str:
        if "@" in value:
            raise ValueError("a user and a password belong in PV_SASL_USERNAME and PV_SASL_PASSWORD_FILE")
        if value != EMBEDDED and not _BROKERS.fullmatch(value):
            raise ValueError("must be `embedded` or kafka://host:port,...")
        for address in value.removesuffix(",").split(","):
            found = _ADDRESS.fullmatch(address.removeprefix("kafka://"))
            if not found or not 0 < int(found[1] or 1) <= LAST_PORT:
                raise ValueError(f"must be kafka://host:port,... with a port from 1 to {LAST_PORT}")
        return value

    @field_validator("releases")
    @classmethod
    def _known_tasks(cls, value: dict[str, Path]) -> dict[str, Path]:
        """The release of another task would never be loaded."""
        if unknown := sorted(value.keys() - set(RELEASED)):
            raise ValueError(f"{', '.join(map(repr, unknown))}: expected {', '.join(RELEASED)}")
        return value

    @field_validator("oauth_token_url")
    @classmethod
    def _private_transport(cls, value: str) -> str:
        """The client secret goes to this address."""
        url = urlsplit(value)
        if value and url.scheme != "https" and not (url.scheme == "http" and _is_local(url.hostname or "")):
            raise ValueError("must be an https URL, or an http URL of this machine")
        return value

    @model_validator(mode="after")
    def _one_worker_of_a_gpu(self) -> Self:
        if self.workers > 1 and self.device != "cpu":
            raise ValueError("PV_WORKERS must be 1 with this PV_DEVICE: an index on a GPU is not thread-safe")
        return self

    @model_validator(mode="after")
    def _one_source_of_tokens(self) -> Self:
        if self.security.startswith("SASL") and self.sasl_mechanism == OAUTH:
            if (self.sasl_token_file is None) == (not self.oauth_token_url):
                raise ValueError("OAUTHBEARER needs either PV_SASL_TOKEN_FILE or PV_OAUTH_TOKEN_URL")
            if self.oauth_token_url and not (
                self.oauth_client_id and self.oauth_client_secret.get_secret_value()
            ):
                raise ValueError(
                    "PV_OAUTH_TOKEN_URL needs PV_OAUTH_CLIENT_ID and PV_OAUTH_CLIENT_SECRET_FILE"
                )
        return self

    @property
    def state_folder(self) -> Path:
        """The folder for what this machine remembers of this pipeline; one for each prefix."""
        return self.state.expanduser() / self.prefix

    @property
    def bootstrap(self) -> list[str]:
        """host:port of each broker."""
        return [b.removeprefix("kafka://") for b in self.broker.split(",") if b]

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context of the connections to the broker; None without TLS. Raises OSError, which names the
        setting, for a file that cannot be used.
        """
        if "SSL" not in self.security:
            return None
        password = self.ssl_key_password.get_secret_value()
        return tls_context(self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile, password)

    def token_provider(self) -> Any:
        """What gives access tokens to aiokafka, for OAUTHBEARER; None for the other mechanisms."""
        if not self.security.startswith("SASL") or self.sasl_mechanism != OAUTH:
            return None
        from streams.credentials import tokens  # noqa: PLC0415  takes long to import, and few need it

        if self.sasl_token_file is not None:
            return tokens.FileTokens(self.sasl_token_file)
        secret = self.oauth_client_secret.get_secret_value()
        return tokens.client_credentials(
            tokens.Client(self.oauth_token_url, self.oauth_client_id, secret, self.oauth_scope)
        )

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
                "sasl_oauth_token_provider": self.token_provider(),
                "sasl_plain_username": self.sasl_username,
                "sasl_plain_password": self.sasl_password.get_secret_value(),
            }
        return options


def _is_local(host: str) -> bool:
    """Whether a host of a URL is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
