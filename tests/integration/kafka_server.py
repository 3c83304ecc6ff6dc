"""Finds or starts a real Apache Kafka broker for the integration tests."""

from __future__ import annotations

import atexit
import base64
import os
import random
import re
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired, run
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from cryptography.x509.oid import NameOID

POM = Path(__file__).with_name("kafka-pom.xml")
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies"
MIN_JAVA = 17
RESOLVE_TIMEOUT_S = 300.0
TOOL_TIMEOUT_S = 240.0
READY_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 60.0

# Below the usual ephemeral range: a client that retries a killed broker could otherwise be given the broker's
# own port as its source port, connect to itself, and keep the restarted broker off that port.
PORTS = range(20_000, 32_000)
# Another process may take a port between the look and the start: the broker then gets others, so many times.
OTHER_PORTS = 2
PORT_TAKEN = "Unable to start acceptor"

# The tests put little through the broker, so a fast start matters more than a fast steady state.
JVM_FLAGS = ("-Xms64m", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# The controller refuses a restarted broker until the session of the killed one has run out: hence the short
# session.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}{secure_listener}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=400
log.dirs={data}
log.retention.ms=-1
log.cleaner.dedupe.buffer.size=4194304
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
"""

# A listener that wants TLS and a password or an access token, beside the open one. It takes any token whose
# claims are valid, signed or not, and closes a connection when its token has expired. Everybody but the user
# LIMITED may do everything.
OAUTH = "org.apache.kafka.common.security.oauthbearer"
VALIDATOR = f"{OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
USER, PASSWORD = "tester", "word-of-the-test"
LIMITED = "staging"
SECURE = f"""\
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
listener.name.secure.oauthbearer.sasl.jaas.config=\
{OAUTH}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";
listener.name.secure.oauthbearer.sasl.server.callback.handler.class={VALIDATOR}
listener.name.secure.oauthbearer.connections.max.reauth.ms=3600000
listener.name.secure.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}" \
user_{LIMITED}="{PASSWORD}";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{USER};User:pvstream
ssl.keystore.type=PKCS12
ssl.keystore.password={PASSWORD}
ssl.keystore.location="""

# Ends the broker when this process dies too hard for atexit: the pipe to its stdin closes with us. It is
# handed a pidfd, not a process id, because an id may by then belong to somebody else.
WATCHDOG = """\
import select, signal, sys
broker = int(sys.argv[1])
if broker not in select.select([sys.stdin, broker], [], [])[0]:
    signal.pidfd_send_signal(broker, signal.SIGKILL)
"""


class KafkaUnavailable(Exception):
    """No broker can be had here; the message is one line that says why."""


class LocalKafka:
    """One broker process of our own. `restart` blocks: from a coroutine, use `asyncio.to_thread`."""

    def __init__(self, java: str, jars: Path, classes: Path, *, secure: bool = False) -> None:
        broker, controller, guarded = islice(filter(_is_free, random.sample(PORTS, 200)), 3)
        self.secure_bootstrap = f"127.0.0.1:{guarded}"
        self.bootstrap = f"127.0.0.1:{broker}"
        self.dir = Path(tempfile.mkdtemp(prefix="pvstream-kafka-"))
        self.log = self.dir / "broker.log"
        self.process: Popen[bytes] | None = None
        self._watchdog: Popen[bytes] | None = None
        self._classes = classes
        known = [f"-XX:SharedArchiveFile={classes}"] if classes.exists() else []
        self._java = [java, *JVM_FLAGS, *known, "-cp", f"{jars}/*"]
        self._config = self.dir / "server.properties"
        data = self.dir / "data"
        listener = f",SECURE://{self.secure_bootstrap}" if secure else ""
        self._config.write_text(
            PROPERTIES.format(broker=broker, controller=controller, data=data, secure_listener=listener)
            + (f"{SECURE}{self._keystore()}\n" if secure else "")
        )
        atexit.register(self.stop)
        try:
            self._format()
            self._launch()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self._end(signal.SIGTERM)
        self._launch()

    def stop(self) -> None:
        if not self._classes.exists():
            self._keep_classes()
        self._end(signal.SIGKILL)  # What it would still write is removed.
        shutil.rmtree(self.dir, ignore_errors=True)
        atexit.unregister(self.stop)

    @property
    def certificate(self) -> Path:
        """What a client of the secure listener has to trust."""
        return self.dir / "certificate.pem"

    def _keep_classes(self) -> None:
        """For the brokers of later tests, which start from them in half the time."""
        written, fresh = self.dir / "classes.jsa", self._classes.with_name(self.dir.name)
        if self._end(signal.SIGTERM, WRITE_TIMEOUT_S) == 128 + signal.SIGTERM and written.exists():
            shutil.copyfile(written, fresh)
            fresh.rename(self._classes)

    def _keystore(self) -> Path:
        """A key with a certificate for 127.0.0.1."""
        store = self.dir / "broker.p12"
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
            .sign(key, hashes.SHA256())
        )
        self.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        password = BestAvailableEncryption(PASSWORD.encode())
        store.write_bytes(serialize_key_and_certificates(b"kafka", key, certificate, None, password))
        return store

    def _format(self) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # "--cluster-id=" in one word, since a random id may begin with a dash.
        tool = ["kafka.tools.StorageTool", "format", "--standalone", f"--cluster-id={cluster}"]
        _run([*self._java, *tool, "--config", str(self._config)], self.log, TOOL_TIMEOUT_S)

    def _launch(self) -> None:
        java, *options = self._java
        if not self._classes.exists():
            options = [f"-XX:ArchiveClassesAtExit={self.dir / 'classes.jsa'}", *options]
        command = [java, *options, "kafka.Kafka", str(self._config)]
        # A session of its own: Ctrl-C then reaches only the tests, which still need the broker to tear down.
        with self.log.open("ab") as log:
            self.process = Popen(command, stdin=DEVNULL, stdout=log, stderr=log, start_new_session=True)
        if hasattr(os, "pidfd_open"):
            broker = os.pidfd_open(self.process.pid)
            watch = [sys.executable, "-ISc", WATCHDOG, str(broker)]
            self._watchdog = Popen(watch, stdin=PIPE, pass_fds=[broker], start_new_session=True)
            os.close(broker)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not _answers(self.bootstrap):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise KafkaUnavailable(f"the Kafka broker did not start: {_complaint(self.log)}")
            time.sleep(0.05)

    def _end(self, how: signal.Signals, seconds: float = STOP_TIMEOUT_S) -> int | None:
        """The exit code where it was running."""
        code = None
        if self.process is not None:
            self.process.send_signal(how)
            try:
                code = self.process.wait(seconds)
            except TimeoutExpired:
                self.process.kill()
                code = self.process.wait()
            self.process = None
        if self._watchdog is not None:
            self._watchdog.communicate()  # It ends by itself once the broker has ended.
            self._watchdog = None
        return code


def own_kafka(*, secure: bool = False) -> LocalKafka:
    """A broker that answers; raises KafkaUnavailable where none can be started."""
    java = shutil.which("java")
    if java is None:
        raise KafkaUnavailable("no java on PATH")
    banner = run([java, "-version"], capture_output=True, text=True, check=False, timeout=TOOL_TIMEOUT_S)
    version = re.search(r'version "((\d+)[^"]*)', banner.stderr)
    if version is None or int(version[2]) < MIN_JAVA:
        raise KafkaUnavailable(f"the java on PATH is not Java {MIN_JAVA} or newer")
    jars = _kafka_jars()
    # Java looks at its own version in the file too, but would not write another one.
    classes = jars.with_name(f"{jars.name}-java-{version[1]}.jsa")
    for _ in range(OTHER_PORTS):
        try:
            return LocalKafka(java, jars, classes, secure=secure)
        except KafkaUnavailable as reason:
            if PORT_TAKEN not in str(reason):
                raise
    return LocalKafka(java, jars, classes, secure=secure)


def _kafka_jars() -> Path:
    version = re.search(r"<kafka\.version>(.+?)</", POM.read_text())
    assert version is not None
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    jars = Path(home) / "pvstream-tests" / f"kafka-{version[1]}"
    if jars.is_dir():
        return jars
    mvn = shutil.which("mvn")
    if mvn is None:
        raise KafkaUnavailable("no mvn on PATH to fetch Kafka with")
    jars.parent.mkdir(parents=True, exist_ok=True)
    # Renamed only when complete, so that a cache directory that exists can be trusted.
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="fetching-") as temp:
        fresh = Path(temp, "jars")
        goal = [COPY_JARS, "-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
        _run([mvn, "-q", "-B", "-f", str(POM), *goal], Path(temp, "mvn.log"), RESOLVE_TIMEOUT_S)
        try:
            fresh.rename(jars)
        except OSError:
            if not jars.is_dir():  # Otherwise another test run was first, and its copy is as good.
                raise
    return jars


def _run(command: list[str], log: Path, timeout_s: float) -> None:
    name = Path(command[0]).name
    # Output goes to a file, not a pipe: a grandchild that holds a pipe open would defeat the timeout.
    with log.open("ab") as out:
        try:
            done = run(command, stdin=DEVNULL, stdout=out, stderr=out, check=False, timeout=timeout_s)
        except TimeoutExpired as late:
            raise KafkaUnavailable(f"{name} did not finish within {timeout_s:.0f} s") from late
    if done.returncode:
        raise KafkaUnavailable(f"{name} failed: {_complaint(log)}")


def _complaint(log: Path) -> str:
    text = re.sub(r"\x1b\[[\d;]*m", "", log.read_text(errors="replace"))  # Maven colours even a file.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A broker also names exceptions that it gets over, before the one that ends it.
    signs = (PORT_TAKEN, "FATAL", "ERROR", "Exception")
    found = [line for sign in signs for line in lines if sign in line]
    return (found or lines[-1:] or ["it said nothing"])[0]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _answers(address: str) -> bool:
    """Whether a Metadata request to this host:port is answered with at least one live broker."""
    host, _, port = address.rpartition(":")
    # Metadata is API 3; version 1, correlation id 0, no client id, no topics.
    request = struct.pack(">hhihi", 3, 1, 0, -1, 0)
    try:
        with socket.create_connection((host, int(port)), timeout=2) as conn, conn.makefile("rb") as reply:
            conn.sendall(struct.pack(">i", len(request)) + request)
            _, _, brokers = struct.unpack(">iii", reply.read(12))
    except (OSError, ValueError, struct.error):
        return False
    return bool(brokers > 0)
