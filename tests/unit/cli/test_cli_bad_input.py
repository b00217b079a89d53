"""Bad input of every kind to every command: an exit code, one to three lines on stderr, never a traceback."""

import io
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import typer

from ottla.cli import main as cli_main
from ottla.cli.app import build
from ottla.cli.main import ALL_COMMANDS, main
from ottla.testing.broker import Broker
from tests.unit.cli.conftest import Result

OTTLA = [sys.executable, "-m", "ottla"]
LINES_MAX = 3
LINES_PER_SEED = 3
VALUES = (
    *("", " ", "x", "-", "--", "-1", "0", "²", "９", "1.5", "1e400", "nan", "inf", "-inf", "true"),
    *("2147483648", "9223372036854775808", "9" * 5000, "0x10", "1_000", "65536"),
    *("a\udcff", "\udc80=\udc80", "🦑", "a\nb", "\x1b[31m", "a" * 100_000, "../..", "/dev/null", "/proc/self/mem"),
    *("=", "a=b=c", "a+=b", "=a", "[", "{}", "%n", ":", ":0", "[::1", "a:b:c", "127.0.0.1:99999"),
    *(
        "@",
        "@-1",
        "@²",
        "@" + "9" * 30,
        "0001-01-01",
        "9999-12-31T23:59:59",
        "P999999999D",
        "9" * 400 + "d",
        "99999999w",
    ),
)
BASES = {
    "topic create": ["created"],
    "topic describe": ["orders"],
    "topic alter": ["orders", "--partitions", "1", "--dry-run"],
    "topic delete": ["missing", "--if-exists", "--yes"],
    "produce": ["orders"],
    "consume": ["orders"],
    "profile set": ["staging", "linger.ms=1"],
    "profile show": ["staging"],
    "profile delete": ["staging"],
    "group describe": ["kitchen"],
    "group lag": ["kitchen"],
    "group reset-offsets": ["kitchen", "--topic", "orders", "--to-earliest"],
    "group delete": ["kitchen", "--yes"],
    "config describe": ["topic", "orders"],
    "config set": ["topic", "orders", "retention.ms=1", "--dry-run"],
    "config unset": ["topic", "orders", "retention.ms", "--dry-run"],
    "log dump": ["."],
    "log verify": ["."],
    "log stats": ["."],
    "perf produce": ["orders", "--records", "1"],
    "perf consume": ["orders", "--records", "1"],
    "perf latency": ["orders", "--records", "1"],
    "format": ["--data", "formatted"],
    "completion": ["bash"],
}
"""Arguments that are complete and finish quickly."""
SLOW = {"perf produce --records", "perf consume --records", "perf latency --records", "perf produce --size"}
"""Options for which a large number is not an error, but hours of work."""


def commands() -> dict[str, Any]:
    root: Any = typer.main.get_command(build(ALL_COMMANDS))
    found: dict[str, Any] = {}
    for name, command in root.commands.items():
        for below, each in getattr(command, "commands", {"": command}).items():
            found[f"{name} {below}".strip()] = each
    return found


COMMANDS = commands()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """An own broker, as some of the lines change what is on it."""
    with Broker() as started:
        started.create_topic("orders", 1)
        assert main(["produce", "orders", "--value", "x", "--bootstrap", started.bootstrap]) == 0
        yield started


@pytest.fixture
def run(broker: Broker, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Callable[..., Result]:
    """Run a command in an empty directory; `ottla start` only reads its arguments."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP", broker.bootstrap)
    monkeypatch.setattr("ottla.node.main.run", lambda *_, **__: None)
    monkeypatch.chdir(tmp_path)

    def run_(*arguments: str) -> Result:
        streams = {name: io.BytesIO(b"x\n" if name == "stdin" else b"") for name in ("stdin", "stdout", "stderr")}
        for name, stream in streams.items():
            monkeypatch.setattr(sys, name, io.TextIOWrapper(stream, encoding="utf-8", errors="backslashreplace"))
        code = main(list(arguments))
        sys.stderr.flush()
        return Result(code, "", streams["stderr"].getvalue().decode())

    return run_


def check(arguments: list[str], result: Result) -> None:
    shown = ([each[:60] for each in arguments], result.code, result.err[:2000])
    assert result.code in (0, 1, 2), shown
    assert "Traceback" not in result.err, shown
    assert "unexpected error" not in result.err, shown
    if result.code:
        lines = result.err.splitlines()
        assert 1 <= len(lines) <= LINES_MAX or "Usage: " in result.err, shown
        assert all(len(line) < 1000 for line in lines), shown
        assert not any(word in result.err for word in ("pydantic", "Input should", "Errno", "codec can't")), shown


def bad_line(path: str, random_: random.Random) -> list[str]:
    """Return arguments with one or two bad values: of options, added, or in place of another argument."""
    base = BASES.get(path, [])
    words = [*path.split(), *base]
    has_timeout = any(each.name == "timeout" for each in COMMANDS[path].params)
    for _ in range(random_.choice((1, 1, 2))):
        value = random_.choice(VALUES)
        options = [
            each.opts[0]
            for each in COMMANDS[path].params
            if each.opts[0].startswith("--") and f"{path} {each.opts[0]}" not in SLOW
        ]
        flags = {each.opts[0] for each in COMMANDS[path].params if getattr(each, "is_flag", False)}
        way = random_.randrange(6)
        if way < 4 and options:
            option = random_.choice(options)
            words += [f"{option}={value}"] if option in flags or way == 0 else [option, value]
        elif way == 4 and base:
            words[len(path.split()) + random_.randrange(1 if path.startswith("perf") else len(base))] = value
        else:
            words.append(value)
    return words if not has_timeout else [*words[: len(path.split())], "--timeout", "1", *words[len(path.split()) :]]


@pytest.mark.parametrize("path", [path for path in COMMANDS if path != "demo"])
def test_random_bad_arguments(path: str, sim_seed: int, run: Callable[..., Result]) -> None:
    random_ = random.Random(f"{path} {sim_seed}")
    for _ in range(LINES_PER_SEED):
        arguments = bad_line(path, random_)
        check(arguments, run(*arguments))


EXPECTED = {
    "topic create a\udcff": (2, "ottla: b'a\\xff' is not valid UTF-8\n       see: ottla topic create --help\n"),
    "topic create " + "a" * 40_000: (
        2,
        "ottla: aaaaaaaaaaaaaaaaaaaa... is longer than 32767 bytes\n       see: ottla topic create --help\n",
    ),
    "topic create x --replication-factor 32768": (
        2,
        "ottla: --replication-factor: must be at most 32767, got 32768\n       see: ottla topic create --help\n",
    ),
    "topic list --bootstrap \udcff:1": (
        2,
        "ottla: b'\\xff:1' is not valid UTF-8\n       see: ottla topic list --help\n",
    ),
    "start --set a=\udcff": (2, "ottla: b'a=\\xff' is not valid UTF-8\n"),
    "start --data /dev/null/\udcff": (
        1,
        "ottla: cannot create data directory /dev/null/\\udcff: a file is in its path; choose another with --data\n",
    ),
    "log stats \udcff": (1, "ottla: \\udcff: no such file or directory\n"),
    "consume orders --from \x1b[31m": (
        2,
        "ottla: '\\x1b[31m' is not a time: use 2026-01-31T12:00:00Z, @ and epoch milliseconds, or a duration such "
        "as 15m for 15 minutes ago\n       see: ottla consume --help\n",
    ),
}


@pytest.mark.parametrize("line", EXPECTED, ids=lambda line: ascii(line)[:50])
def test_bad_arguments(line: str, broker: Broker, tmp_path: pathlib.Path) -> None:
    """As a process, with the bytes that a shell passes."""
    done = execute(*line.split(" "), broker=broker, directory=tmp_path)
    assert (done.returncode, done.stderr) == EXPECTED[line]


def execute(
    *arguments: str, broker: Broker, directory: pathlib.Path, **options: Any
) -> "subprocess.CompletedProcess[str]":
    variables = {**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap}
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | options
    return subprocess.run(
        [*OTTLA, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env=variables,
        check=False,
        timeout=60,
        **options,
    )


@pytest.mark.parametrize(
    "line", ["topic list", "topic list --json", "consume orders", "--help", "topic --help", "log stats ."]
)
def test_full_disk_behind_stdout(line: str, broker: Broker, tmp_path: pathlib.Path) -> None:
    (tmp_path / f"{'0' * 20}.log").touch()
    with open("/dev/full", "w") as full:
        done = execute(*line.split(), broker=broker, directory=tmp_path, stdout=full)
    assert (done.returncode, done.stderr) == (1, "ottla: No space left on device\n")


@pytest.mark.parametrize(
    "line", ["topic list", "consume orders", "produce orders", "version", "--help", "start --port x"]
)
def test_closed_standard_streams(line: str, broker: Broker, tmp_path: pathlib.Path) -> None:
    command = f'"$0" -m ottla {line} <&- >&-'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap},
        check=False,
        timeout=60,
    )
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_output_that_the_terminal_cannot_show(encoding: str, broker: Broker, tmp_path: pathlib.Path) -> None:
    (tmp_path / "🦑-0").mkdir()
    (tmp_path / "🦑-0" / f"{'0' * 20}.log").touch()
    done = subprocess.run(
        [*OTTLA, "log", "stats", "."],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_unexpected_errors_are_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The last resort for bugs: the traceback only if a variable asks for it."""

    def fail(words: list[str]) -> int:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(cli_main, "_run", fail)
    monkeypatch.setattr(cli_main, "_discard_output", lambda: None)
    expected = (
        "ottla: unexpected error: ZeroDivisionError: division by zero\n"
        "       This is a bug; OTTLA_TRACEBACK=1 prints where it happened.\n"
    )
    assert main(["version"]) == 1
    assert capfd.readouterr().err == expected
    monkeypatch.setenv("OTTLA_TRACEBACK", "1")
    assert main(["version"]) == 1
    assert capfd.readouterr().err.startswith("Traceback")


@pytest.mark.parametrize("line", ["topic list", "consume orders --follow", "produce orders", "--help"])
def test_ctrl_c_at_any_time_prints_nothing(line: str, broker: Broker, tmp_path: pathlib.Path) -> None:
    """SIGINT while the modules of the command are imported."""
    program = (
        "import os, signal, sys\n"
        "from ottla.cli import main\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('ottla.cli.app', 'shutil', 'typer'): os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        f"sys.exit(main.main({line.split()!r}))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OTTLA_BOOTSTRAP": broker.bootstrap},
        text=True,
    ) as process:
        assert process.wait(60) in (0, 128 + signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == ""


WITH_BROKER = [path for path, command in COMMANDS.items() if any(each.name == "bootstrap" for each in command.params)]


@pytest.fixture(scope="module")
def strange_servers() -> Iterator[dict[str, str]]:
    """Addresses of servers that are no broker: one sends HTTP, one accepts and is silent, one closes connections."""
    with ExitStack() as stack:
        addresses = {"refused": "127.0.0.1:1", "unknown host": "no-such-host.invalid:9092"}
        for name, answer in (("http", b"HTTP/1.1 400 Bad Request\r\n\r\n"), ("silent", None), ("closes", b"")):
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            addresses[name] = f"127.0.0.1:{listener.getsockname()[1]}"
            threading.Thread(target=_serve, args=(listener, answer), daemon=True).start()
        yield addresses


def _serve(listener: socket.socket, answer: bytes | None) -> None:
    connections = []
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connections.append(connection)
            if answer is not None:
                connection.sendall(answer)
                connection.close()


@pytest.mark.parametrize("server", ["refused", "unknown host", "http", "silent", "closes"])
@pytest.mark.parametrize("path", WITH_BROKER)
def test_wrong_broker(path: str, server: str, run: Callable[..., Result], strange_servers: dict[str, str]) -> None:
    result = run(*path.split(), *BASES.get(path, []), "--bootstrap", strange_servers[server], "--timeout", "0.5")
    check([path, server], result)
    assert result.code == 1
    assert strange_servers[server] in result.err


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\xfe\x00", b"\\u00zz=1", b"linger.ms=soon\nretries=\n", b"=" * 99]
)
@pytest.mark.parametrize("path", WITH_BROKER)
def test_unreadable_client_config(
    path: str, content: bytes | None, run: Callable[..., Result], tmp_path: pathlib.Path
) -> None:
    """A directory instead of a file, and files of any bytes."""
    file = tmp_path / "client.properties"
    if content is None:
        file.mkdir()
    else:
        file.write_bytes(content)
    arguments = [*path.split(), *BASES.get(path, []), "--client-config", str(file), "--timeout", "2"]
    result = run(*arguments)
    check(arguments, result)
    assert content is not None or (result.code, result.err) == (1, f"ottla: {file}: Is a directory\n")
