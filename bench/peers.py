"""Brokers in child processes: Apache Kafka, as the peer of benchmarks and the reference of tests, and Ottla.

    with ApacheKafka() as kafka, OttlaProcess(settings={"num.partitions": "4"}) as ottla:
        print(kafka.bootstrap, kafka.pid, ottla.bootstrap, ottla.data_dir)
        kafka_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", ottla.bootstrap, "--list")

Kafka's jars are downloaded once from Maven Central into `~/.cache/apache-kafka-VERSION` (or `$KAFKA_JARS`). Without
Java, Maven or the jars, `PeerUnavailable` has the reason: a test is skipped with it, a benchmark prints it.
"""

import base64
import contextlib
import fcntl
import functools
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

KAFKA_VERSION = "4.3.0"
SCALA_VERSION = "2.13"
LOG4J_VERSION = "2.25.1"
JAVA_VERSION_MIN = 17
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>peer</groupId><artifactId>peer</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId>
<artifactId>kafka_{SCALA_VERSION}</artifactId><version>{KAFKA_VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId>
<artifactId>kafka-tools</artifactId><version>{KAFKA_VERSION}</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId>
<artifactId>log4j-slf4j-impl</artifactId><version>{LOG4J_VERSION}</version></dependency>
</dependencies></project>
"""
LOGGING = """Configuration:
  Appenders:
    Console:
      name: STDERR
      target: SYSTEM_ERR
      PatternLayout: {pattern: '[%d] %p %m (%c)%n'}
  Loggers:
    Root: {level: WARN, AppenderRef: [{ref: STDERR}]}
"""
# The flags of Kafka's start script, so that the peer runs as intended by its developers.
SERVER_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)
# A tool runs for a second: the C1 compiler and the serial collector save half of that.
TOOL_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")


class PeerUnavailable(Exception):
    """A peer cannot run on this machine. The message names the missing dependency."""


@functools.cache
def java_command() -> str:
    """Return the path of a Java that Kafka supports."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise PeerUnavailable("no java on the PATH (and no JAVA_HOME)")
    done = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', done.stderr + done.stdout)
    if version is None:
        raise PeerUnavailable(f"cannot read the version from {found} -version")
    if int(version[1]) < JAVA_VERSION_MIN:
        raise PeerUnavailable(f"{found} is Java {version[1]}, Kafka {KAFKA_VERSION} needs {JAVA_VERSION_MIN}")
    return found


def jar_cache() -> Path:
    """Return the directory of the jars."""
    return Path(os.environ.get("KAFKA_JARS") or Path.home() / ".cache" / f"apache-kafka-{KAFKA_VERSION}")


@functools.cache
def kafka_class_path() -> str:
    """Return the class path of Kafka and its dependencies. Maven downloads them on first use, under a lock."""
    java_command()
    cache, libs = jar_cache(), jar_cache() / "libs"
    if not (cache / "complete").exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise PeerUnavailable(f"no mvn on the PATH to fetch Kafka {KAFKA_VERSION} with, and no jars in {cache}")
        libs.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (cache / "complete").exists():
                _fetch_jars(maven, cache, libs)
    return f"{libs}/*"


def _fetch_jars(maven: str, cache: Path, libs: Path) -> None:
    pom = cache / "pom.xml"
    pom.write_text(POM)
    command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={libs}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise PeerUnavailable(
            f"Maven could not fetch Kafka {KAFKA_VERSION}: {(done.stdout + done.stderr).strip()[-500:]}"
        )
    (cache / "complete").touch()


def _java(flags: Sequence[str], *arguments: str) -> list[str]:
    class_path, logging = kafka_class_path(), jar_cache() / "peers-log4j2.yaml"
    if not logging.exists():
        temporary = logging.with_suffix(f".{os.getpid()}")
        temporary.write_text(LOGGING)
        temporary.replace(logging)
    return [java_command(), *flags, f"-Dlog4j2.configurationFile={logging}", "-cp", class_path, *arguments]


def kafka_tool_command(tool: str, *arguments: str, flags: Sequence[str] = TOOL_FLAGS) -> list[str]:
    """Return the command line of one of Kafka's tools, given by its class name."""
    return _java(("-Xmx512m", *flags), tool, *arguments)


def kafka_tool(
    tool: str, *arguments: str, stdin: str | None = None, timeout: float = 120, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools and return the completed process, with its output as text.

    With `check`, a failure raises RuntimeError with the tool's output.
    """
    done = subprocess.run(
        kafka_tool_command(tool, *arguments),
        input=stdin or "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check and done.returncode:
        raise RuntimeError(f"{tool} {' '.join(arguments)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def free_port() -> int:
    """Return a free port below the system's range for outgoing connections, so that none of those takes it."""
    chooser = random.SystemRandom()
    for _ in range(1000):
        port = chooser.randrange(18_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port between 18000 and 32000")


def send_request(port: int, key: int, version: int, body: bytes = b"", *, timeout: float = 5) -> bytes:
    """Send one request, with header version 1, on a new connection. Return the response without its correlation id."""
    message = struct.pack(">hhih", key, version, 1, 5) + b"peers" + body
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(struct.pack(">i", len(message)) + message)
        with connection.makefile("rb") as responses:
            head = responses.read(4)
            if len(head) < 4:
                raise ConnectionResetError("closed without a response")
            response = responses.read(struct.unpack(">i", head)[0])
    return response[4:]


def responds_to_api_versions(port: int) -> bool:
    """Whether a broker on this port responds."""
    try:
        return send_request(port, 18, 0)[:2] == b"\0\0"
    except OSError:
        return False


def serves_metadata(port: int) -> bool:
    """Whether the broker on this port is in its own Metadata response: it is registered and unfenced."""
    try:
        brokers = struct.unpack_from(">i", send_request(port, 3, 1, struct.pack(">i", 0)))[0]
    except (OSError, struct.error):
        return False
    return bool(brokers > 0)


def cpu_seconds(pid: int) -> float:
    """Return the user and system time of a process (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process (Linux)."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


class BrokerProcess:
    """A broker in a child process, on a free port of 127.0.0.1. Its data directory survives `kill` and `stop`.

    As a context manager it starts on entry. On exit it is killed and its directory removed, unless one was given.
    """

    name = ""

    def __init__(
        self, *, settings: Mapping[str, str] | None = None, port: int | None = None, data_dir: Path | None = None
    ) -> None:
        self.settings = dict(settings or {})
        self.port = port or free_port()
        self._home: Path | None = None
        self._given_dir = data_dir
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def home(self) -> Path:
        """A temporary directory for files other than data."""
        if self._home is None:
            self._home = Path(tempfile.mkdtemp(prefix=f"{self.name}-"))
        return self._home

    @property
    def data_dir(self) -> Path:
        return self._given_dir or self.home / "data"

    @property
    def log_path(self) -> Path:
        """The output of the process, over all its starts."""
        return self.home / "output.log"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def command(self) -> list[str]:
        raise NotImplementedError

    def spawn(self) -> None:
        """Start the process and return at once."""
        command = self.command()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home)

    def start(self) -> Self:
        """Start or restart the process, with the same port and data. Return once it is ready."""
        self.spawn()
        deadline = time.monotonic() + START_SECONDS_MAX
        while not serves_metadata(self.port):
            ended = self.process.poll()
            if ended is not None or time.monotonic() > deadline:
                reason = (
                    f"exited with {ended}" if ended is not None else f"was not ready within {START_SECONDS_MAX:.0f} s"
                )
                self.kill()
                raise RuntimeError(f"{self.name} on port {self.port} {reason}:\n{self.output()[-3000:]}")
            time.sleep(0.02)
        return self

    def stop(self) -> int:
        """Send SIGTERM, wait for the end and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(
                f"{self.name} did not stop within {STOP_SECONDS_MAX:.0f} s:\n{self.output()[-3000:]}"
            ) from None

    def kill(self) -> None:
        """Send SIGKILL. Data that the process has not passed to the kernel is lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def output(self) -> str:
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def close(self) -> None:
        """Kill the process and remove its temporary directory."""
        self.kill()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *ended: object) -> None:
        self.close()


class ApacheKafka(BrokerProcess):
    """A combined KRaft node of Apache Kafka, with the flags of Kafka's start script and 1 GB of heap."""

    name = "kafka"

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        data_dir: Path | None = None,
        heap: str = "1g",
    ) -> None:
        kafka_class_path()
        super().__init__(settings=settings, port=port, data_dir=data_dir)
        self.heap = heap
        self._controller_port = free_port()

    def properties(self) -> dict[str, str]:
        one_replica = {
            f"{topic}.replication.factor": "1"
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        }
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.data_dir),
            **one_replica,
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **self.settings,
        }

    def format(self) -> None:
        """Format the data directory, unless it has a cluster id."""
        config = self.home / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self.properties().items()))
        if not (self.data_dir / "meta.properties").exists():
            cluster_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
            kafka_tool(
                "kafka.tools.StorageTool",
                "format",
                "--cluster-id",
                cluster_id.replace("-", "A"),
                "--config",
                str(config),
            )

    def command(self) -> list[str]:
        self.format()
        flags = (f"-Xms{self.heap}", f"-Xmx{self.heap}", *SERVER_FLAGS, f"-Dkafka.logs.dir={self.home}")
        return _java(flags, "kafka.Kafka", str(self.home / "server.properties"))


class OttlaProcess(BrokerProcess):
    """A node started by `ottla start`, from the environment of this or another Python.

    `arguments` precede the settings on the command line. With `--ephemeral` it chooses its own data directory.
    """

    name = "ottla"

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        data_dir: Path | None = None,
        arguments: Sequence[str] = (),
        python: Path = Path(sys.executable),
    ) -> None:
        super().__init__(settings=settings, port=port, data_dir=data_dir)
        self._arguments = tuple(arguments)
        self._script = python.parent / "ottla"

    def command(self) -> list[str]:
        if not self._script.exists():
            raise PeerUnavailable(f"{self._script} does not exist: install the project into that environment first")
        settings = {"listeners": f"PLAINTEXT://{self.bootstrap}"}
        if "--ephemeral" not in self._arguments:
            settings["log.dirs"] = str(self.data_dir)
        sets = (part for name, value in {**settings, **self.settings}.items() for part in ("--set", f"{name}={value}"))
        return [str(self._script), "start", *self._arguments, *sets]
