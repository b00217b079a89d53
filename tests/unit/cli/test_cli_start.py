"""`ottla start` as a process: its output, exit codes, and errors."""

import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from ottla import __version__
from ottla.cli.start import announcement, unreachable_note
from ottla.node.config import node_config

SECONDS_MAX = 30.0
OTTLA = [sys.executable, "-m", "ottla"]


class Process:
    """A running `ottla start` and its output."""

    def __init__(self, *options: str, directory: pathlib.Path, command: Sequence[str] = (*OTTLA, "start")) -> None:
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=directory, env=environment
        )
        self.output = ""

    def wait_until_started(self) -> str:
        """Return the output up to the end of the announcement. Fails with stderr if the process exits before."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + SECONDS_MAX
        while "ottla consume" not in self.output or not self.output.endswith("\n\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self.process.stdout.fileno(), 65536).decode() if ready else ""
            if not chunk:
                self.process.kill()
                raise AssertionError(f"it did not start: {self.output}{self.process.communicate()[1].decode()}")
            self.output += chunk
        return self.output

    @property
    def bootstrap(self) -> str:
        found = re.search(r"listening on (\S+)", self.output)
        assert found is not None, self.output
        return found[1]

    @property
    def data(self) -> pathlib.Path:
        found = re.search(r"^  data    (\S+)", self.output, re.MULTILINE)
        assert found is not None, self.output
        return pathlib.Path(found[1])

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=SECONDS_MAX)
        return self.process.returncode, errors.decode()


@contextmanager
def started(*options: str, directory: pathlib.Path) -> Iterator[Process]:
    process = Process(*options, directory=directory)
    try:
        process.wait_until_started()
        yield process
    finally:
        if process.process.poll() is None:
            process.end()


def start_error(*options: str, directory: pathlib.Path) -> str:
    """Return stderr of a start that must fail."""
    done = subprocess.run(
        [*OTTLA, "start", *options], capture_output=True, text=True, cwd=directory, timeout=SECONDS_MAX, check=False
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "Traceback" not in done.stderr
    return done.stderr


def test_announcement_and_exit_code(tmp_path: pathlib.Path) -> None:
    with started("--port", "0", directory=tmp_path) as process:
        data = tmp_path / "ottla-data"
        assert process.output.splitlines() == [
            f"Ottla {__version__} listening on {process.bootstrap}",
            f"  data    {data}",
            "  stop    Ctrl-C",
            "  reset   stop it, then delete ottla-data",
            "  try it  in another terminal:",
            "",
            f"    echo hello | python -m ottla produce greetings --bootstrap {process.bootstrap}",
            f"    python -m ottla consume greetings --bootstrap {process.bootstrap}",
            "",
        ]
        assert process.bootstrap.startswith("127.0.0.1:")
        assert (data / "meta.properties").exists()
        assert process.end() == (0, "")
        assert data.exists()


def test_printed_example_runs(tmp_path: pathlib.Path) -> None:
    """The two printed commands produce and consume a record."""
    with started("--port", "0", "--ephemeral", directory=tmp_path) as process:
        printed = textwrap.dedent("\n".join(line for line in process.output.splitlines() if line.startswith("    ")))
        assert len(printed.splitlines()) == 2
        variables = os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["sh", "-c", printed], capture_output=True, text=True, timeout=SECONDS_MAX, check=False, env=variables
        )
        assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr


def test_default_address_is_not_repeated_in_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/ottla"])
    text = announcement("127.0.0.1:9092", node_config({"log.dirs": "/srv/kafka"}), is_ephemeral=False)
    assert text.endswith("\n\n    echo hello | ottla produce greetings\n    ottla consume greetings\n")
    assert "reset" not in text, "only the default directory is known to be Ottla's"


def test_directory_with_foreign_files_is_not_touched(tmp_path: pathlib.Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")
    message = start_error("--port", "0", "--data", "home", directory=tmp_path)
    assert message == (
        f"ottla: {home} is not a data directory but is not empty: it contains thesis.tex; choose a new or empty "
        "directory with --data\n"
    )
    assert [each.name for each in home.iterdir()] == ["thesis.tex"]
    assert "ottla: " in message


@pytest.mark.parametrize("is_there", [True, False])
def test_port_in_use_leaves_no_files(is_there: bool, tmp_path: pathlib.Path) -> None:
    if is_there:
        (tmp_path / "data").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        start_error("--port", str(taken.getsockname()[1]), "--data", "data", directory=tmp_path)
    assert [each.name for each in tmp_path.rglob("*")] == (["data"] if is_there else [])


def test_invalid_cluster_id_leaves_no_files(tmp_path: pathlib.Path) -> None:
    start_error("--port", "0", "--cluster-id", "x", "--data", "a/b", directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_wildcard_host_with_a_reachable_address_does_not_warn() -> None:
    listeners = {"listeners": "PLAINTEXT://0.0.0.0:9092", "advertised.listeners": "PLAINTEXT://broker.example.org:9092"}
    assert unreachable_note(node_config(listeners)) is None
    assert unreachable_note(node_config({"listeners": "PLAINTEXT://127.0.0.1:9092"})) is None


def test_next_start_removes_the_data_of_a_killed_ephemeral_node(tmp_path: pathlib.Path) -> None:
    """Directories of running nodes stay, as do directories that are not marked as ephemeral."""
    (tmp_path / "ottla-mine").mkdir()
    (tmp_path / "ottla-mine" / ".lock").touch()
    os.utime(tmp_path / "ottla-mine" / ".lock", (0, 0))
    program = (
        "import sys, tempfile; from ottla.cli import main; from ottla.node import temporary\n"
        f"temporary._SHARED_MEMORY = {str(tmp_path)!r}\n"
        "sys.exit(main.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "start", "--ephemeral", "--port", "0"]
    killed, running = (Process(directory=tmp_path, command=command) for _ in range(2))
    for each in (killed, running):
        each.wait_until_started()
        os.utime(each.data / ".lock", (0, 0))
    killed.end(signal.SIGKILL)
    assert killed.data.exists()
    third = Process(directory=tmp_path, command=command)
    third.wait_until_started()
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "ottla-mine", running.data, third.data])
    assert [each.end()[0] for each in (running, third)] == [0, 0]
    assert [each.name for each in tmp_path.iterdir()] == ["ottla-mine"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ephemeral_data_is_deleted(number: signal.Signals, tmp_path: pathlib.Path) -> None:
    with started("--port", "0", "--ephemeral", "--log-level", "error", directory=tmp_path) as process:
        data = process.data
        assert "(removed at exit)" in process.output
        assert (data / "meta.properties").exists()
        assert process.end(number) == (0, "")
        assert not data.exists()
        assert list(tmp_path.iterdir()) == []


def test_ephemeral_data_is_deleted_if_the_start_fails(tmp_path: pathlib.Path) -> None:
    program = (
        "import sys, tempfile; from ottla.cli import main, start\n"
        f"start.ephemeral_directory = lambda: tempfile.mkdtemp(dir={str(tmp_path)!r})\n"
        "sys.exit(main.main(sys.argv[1:]))"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [sys.executable, "-c", program, "start", "--ephemeral", "--port", str(taken.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 1
    assert "is in use by" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_port_in_use_names_its_owner(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = start_error("--port", str(port), directory=tmp_path)
    owner = rf".+ \(pid {os.getpid()}\)" if sys.platform == "linux" else ".*"
    advice = r"stop it, or choose another port, such as --port \d+"
    assert re.fullmatch(rf"ottla: port {port} is in use by {owner}; {advice}\n", message)


def test_directory_in_use(tmp_path: pathlib.Path) -> None:
    with started("--port", "0", directory=tmp_path):
        message = start_error("--port", "0", directory=tmp_path)
        assert message == (
            f"ottla: data directory {tmp_path / 'ottla-data'} is in use by another node; "
            "stop it, or choose another with --data\n"
        )


def test_directory_of_another_cluster_or_node(tmp_path: pathlib.Path) -> None:
    with started("--port", "0", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qg", directory=tmp_path) as process:
        assert "cluster.id=MkU3OEVBNTcwNTJENDM2Qg\n" in (tmp_path / "ottla-data" / "meta.properties").read_text()
        assert process.end()[0] == 0
    message = start_error("--port", "0", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", directory=tmp_path)
    assert "MkU3OEVBNTcwNTJENDM2Qg" in message
    assert "AAAAAAAAAAAAAAAAAAAAAQ" in message
    assert message.count("\n") == 1
    message = start_error("--port", "0", "--set", "node.id=2", directory=tmp_path)
    assert message.count("\n") == 1


def test_data_path_is_a_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("file", "file/below"):
        message = start_error("--port", "0", "--data", name, directory=tmp_path)
        assert message == (
            f"ottla: cannot create data directory {tmp_path / name}: a file is in its path; "
            "choose another with --data\n"
        )


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_directory_not_writable(tmp_path: pathlib.Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    message = start_error("--port", "0", "--data", "closed/data", directory=tmp_path)
    assert message.startswith(f"ottla: cannot write to {tmp_path / 'closed'}")


def test_host_of_another_machine(tmp_path: pathlib.Path) -> None:
    message = start_error("--host", "192.0.2.1", "--port", "0", directory=tmp_path)
    assert message == (
        "ottla: cannot listen on 192.0.2.1:0: 192.0.2.1 is not an address of this machine; choose another with --host\n"
    )


def test_unknown_config_is_reported_with_its_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "server.properties").write_text("log.dirs=data\nlog.segment.byte=1\n")
    message = start_error("server.properties", directory=tmp_path)
    assert message == (
        "ottla: server.properties:2: log.segment.byte: unknown config; did you mean log.segment.bytes?\n"
    )


def test_kafka_config_file_and_notes_about_unsupported_configs(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        f"listeners=PLAINTEXT://:{port},CONTROLLER://:9093\nadvertised.listeners=PLAINTEXT://localhost:{port}\n"
        "controller.listener.names=CONTROLLER\nlog.dirs=data\nnum.io.threads=16\nnum.network.threads=3\n"
    )
    with started("server.properties", directory=tmp_path) as process:
        assert process.bootstrap == f"localhost:{port}"
        assert process.end() == (
            0,
            "Note: CONTROLLER://:9093 is not opened: a single-node cluster needs no controller listener.\n"
            "Note: configs that have no effect: num.io.threads.\n"
            f"Note: PLAINTEXT://:{port} accepts clients from other machines but advertises localhost, which they "
            "cannot reach; set --advertise or advertised.listeners.\n",
        )


def test_closed_stdout_does_not_stop_the_node(tmp_path: pathlib.Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    reading, writing = os.pipe()
    os.close(reading)
    command = [*OTTLA, "start", "--ephemeral", "--port", str(port)]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        os.close(writing)
        deadline = time.monotonic() + SECONDS_MAX
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            select.select([], [], [], 0.01)
        process.terminate()
        _, errors = process.communicate(timeout=SECONDS_MAX)
        assert (process.returncode, errors) == (0, "")


def test_data_is_kept_across_restarts(tmp_path: pathlib.Path) -> None:
    identities = []
    for _ in range(2):
        with started("--port", "0", directory=tmp_path) as process:
            identities.append((tmp_path / "ottla-data" / "meta.properties").read_text())
            assert process.end()[0] == 0
    assert identities[0] == identities[1]


HANGING_NODE = """
import asyncio, sys
from ottla.node import main
from ottla.node.config import node_config

class Node:
    bootstrap = "nowhere:0"
    def __init__(self):
        self.failed = asyncio.get_running_loop().create_future()
    async def stop(self):
        print("stopping", flush=True)
        await asyncio.Event().wait()

async def assemble(ports, config, **others):
    return Node()

main.assemble = assemble
main.run(
    node_config({}),
    on_serving=lambda node: print("serving", flush=True),
    on_second_signal=lambda: print("removed", flush=True),
)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_exits_at_once(number: signal.Signals) -> None:
    """A node that hangs during shutdown can still be stopped, and temporary data is deleted."""
    with subprocess.Popen([sys.executable, "-c", HANGING_NODE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "serving\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "stopping\n"
            process.send_signal(number)
            assert process.stdout.readline() == "removed\n"
            assert process.wait(SECONDS_MAX) == 128 + number
        finally:
            process.kill()


RECOVERING_NODE = """
import asyncio, sys
from ottla.cli import main
from ottla.node import main as node_main
from ottla.runtime.log_recovery import RecoveryInterrupted

async def assemble(ports, config, *, is_stopping, **others):
    print("recovering", flush=True)
    while not is_stopping():
        await asyncio.sleep(0.01)
    raise RecoveryInterrupted("the node was stopped in its recovery")

node_main.assemble = assemble
sys.exit(main.main(["start", "--ephemeral"]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_interrupts_recovery(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RECOVERING_NODE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "recovering\n"
            process.send_signal(number)
            output, errors = process.communicate(timeout=SECONDS_MAX)
        finally:
            process.kill()
    assert (process.returncode, output) == (0, "")
    assert errors.endswith(
        " warning ottla.node the node was stopped in its recovery; the next start recovers the logs again\n"
    )


FAILING_NODE = """
import asyncio, sys
from ottla.cli import main
from ottla.node import main as node_main

class Node:
    bootstrap = "nowhere:0"
    def __init__(self):
        self.failed = asyncio.get_running_loop().create_future()
        self.failed.set_exception(OSError("the disk is gone"))
    async def stop(self):
        print("stopped")

async def assemble(ports, config, **others):
    return Node()

node_main.assemble = assemble
sys.exit(main.main(["start", "--ephemeral"]))
"""


def test_fatal_error_stops_the_node() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING_NODE], capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )
    assert (done.returncode, done.stderr) == (1, "ottla: the node stopped: the disk is gone\n")
    assert done.stdout.endswith("stopped\n")


def test_python_m_ottla() -> None:
    done = subprocess.run([*OTTLA, "version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"ottla {__version__}\n"
