"""All commands: lazy imports, exit codes, help, errors with advice, completion, and the generated page."""

import os
import pathlib
import pty
import re
import shlex
import signal
import subprocess
import sys
from typing import Any

import pytest
import typer

from ottla.cli.app import build
from ottla.cli.command_table import BUILTIN_COMMANDS, LAZY_COMMANDS
from ottla.cli.examples import EXAMPLES
from ottla.cli.main import ALL_COMMANDS, main
from ottla.cli.usage import USAGE_ERROR_TYPE
from ottla.testing.broker import Broker

ROOT = pathlib.Path(__file__).parents[3]
OTTLA = [sys.executable, "-m", "ottla"]


@pytest.mark.parametrize("arguments", [["start", "--help"], ["version"], ["--help"]], ids=" ".join)
def test_start_does_not_import_other_commands(arguments: list[str]) -> None:
    """`ottla start` imports neither typer, rich nor the client."""
    program = (
        "import sys\nfrom ottla.cli.main import main\n"
        f"try:\n    main({arguments!r})\nexcept SystemExit: pass\n"
        "unwanted = ('typer', 'rich', 'click', 'pydantic')\n"
        "found = [name for name in sys.modules if name.split('.')[0] in unwanted or name == 'ottla.client']\n"
        "print(found, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "[]\n"


def test_node_does_not_import_typer_or_rich() -> None:
    program = (
        "import sys\nimport ottla.cli.start, ottla.node.main\nfrom ottla.cli.main import make_parsers\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('typer', 'rich', 'click', 'pydantic')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", LAZY_COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: ottla {name}" in capsys.readouterr().out


def test_help_lists_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out.partition("Options:")[0]
    listed = re.findall(r"^  ([a-z]+)\s+(\S+)", shown, re.MULTILINE)
    summaries = {**BUILTIN_COMMANDS, **{name: spec.summary for name, spec in LAZY_COMMANDS.items()}}
    assert listed == [(name, summary.split()[0].capitalize()) for name, summary in summaries.items()]


@pytest.mark.parametrize(
    ("line", "message", "see"),
    [
        ("strat", "no command 'strat'\n       Did you mean start?", "ottla"),
        ("--nothing", "no option '--nothing'", "ottla"),
        ("topic list --nothing", "no option --nothing", "ottla topic list"),
        ("topic list --jsn", "no option --jsn\n       Did you mean --json?", "ottla topic list"),
        ("topic list x y", "unexpected argument: x y", "ottla topic list"),
        ("topic describe", "missing TOPIC...", "ottla topic describe"),
        ("topic make x", "no command 'make'", "ottla topic"),
        ("topic creat x", "no command 'creat'\n       Did you mean create?", "ottla topic"),
        ("topic create x --json=3", "--json does not take a value", "ottla topic"),
        ("topic create x --partitions", "--partitions needs a value", "ottla topic"),
        ("topic create x --partitions many", "--partitions: 'many' is not a whole number", "ottla topic create"),
        ("topic create x --partitions 0", "--partitions: must be at least 1, got 0", "ottla topic create"),
        ("topic list --timeout soon", "--timeout: 'soon' is not a number", "ottla topic list"),
        ("completion", "missing SHELL", "ottla completion"),
        ("completion csh", "SHELL: 'csh' is not one of bash, zsh, fish, powershell", "ottla completion"),
        ("start --prot 1", "no option --prot\n       Did you mean --port?", "ottla start"),
        ("start --port", "--port needs a value", "ottla start"),
        ("start --port x", "--port: 'x' is not a port number from 0 to 65535", "ottla start"),
        ("start --ephemeral=1", "--ephemeral does not take a value", "ottla start"),
        ("start --ephemeral --data x", "--data: cannot be combined with --ephemeral", "ottla start"),
        ("start --log-level x", "--log-level: 'x' is not one of debug, info, warning, error", "ottla start"),
        ("start a b", "unexpected argument: b", "ottla start"),
    ],
)
def test_usage_errors(line: str, message: str, see: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"ottla: {message}\n       see: {see} --help\n")


def command_parsers() -> list[tuple[str, Any]]:
    """Return the path and the typer command of all commands."""
    root: Any = typer.main.get_command(build(ALL_COMMANDS))
    found: list[tuple[str, Any]] = []
    for name, command in root.commands.items():
        below = getattr(command, "commands", {"": command})
        found += [(f"{name} {each}".strip(), below[each]) for each in below]
    return found


@pytest.mark.parametrize(("path", "command"), command_parsers(), ids=[path for path, _ in command_parsers()])
def test_help_has_one_style_and_two_examples(path: str, command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    usage, *sections = re.split(r"\n\n(?=[A-Z][a-z ]+:\n)", shown)
    assert re.match(rf"Usage: ottla {path}( \[?[A-Z.a-z/=]+\]?(\.\.\.)?)* \[OPTIONS\]\n\n[A-Z]", usage)
    titles = [each.partition(":")[0] for each in sections]
    allowed = ["Arguments", "Options", "Connection and output options", "Examples"]
    assert titles == [each for each in allowed if each in titles]
    assert not re.search(r"<\w+>|\[x[<>]|\{[A-Z]|[┌╭│]", shown.replace("{TOPIC", ""))
    examples = sections[-1].splitlines()[1:]
    assert len(examples) >= 2
    assert all(f"ottla {path.split()[0]}" in line or "ottla --version" in line for line in examples)


@pytest.mark.parametrize(("path", "command"), command_parsers(), ids=[path for path, _ in command_parsers()])
def test_examples_are_valid(path: str, command: Any) -> None:
    for line in EXAMPLES[path].splitlines():
        words = shlex.split(line, comments=True)
        if line.startswith("eval") or words == ["ottla", "--version"]:
            continue
        at = max(index for index, word in enumerate(words) if word == "ottla") + 1 + len(path.split())
        assert words[at - len(path.split()) : at] == path.split(), line
        arguments = words[at : words.index(">") if ">" in words else None]
        command.make_context(path, arguments).close()


def test_typer_usage_errors_have_the_expected_attributes() -> None:
    assert USAGE_ERROR_TYPE.__name__ == "ClickException"
    assert {"format_message", "show", "exit_code"} <= set(dir(USAGE_ERROR_TYPE))


def test_connection_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        "ottla: cannot connect to a broker at 127.0.0.1:1 (connection refused)\n"
        "       Start one with `ottla start`, or set its address with --bootstrap HOST:PORT or OTTLA_BOOTSTRAP.\n"
    )


@pytest.mark.parametrize("address", ["nonsense", "a:b", ":1"])
def test_invalid_bootstrap_address(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "--bootstrap", address]) == 1
    assert (
        capsys.readouterr().err
        == f"ottla: bootstrap.servers: '{address}' is not host:port, for example '127.0.0.1:9092'.\n"
    )


class TestClientConfig:
    def run(self, tmp_path: pathlib.Path, text: str, *arguments: str) -> int:
        file = tmp_path / "client.properties"
        file.write_text(text)
        return main(["topic", "list", "--client-config", str(file), *arguments])

    def test_file_sets_broker_and_configs_of_each_client(
        self, tmp_path: pathlib.Path, ottla_session_broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)
        text = (
            f"bootstrap.servers={ottla_session_broker.bootstrap}\n"
            "linger.ms=7\nkey.serializer=org.example.Java\nretries=3\n"
        )
        assert self.run(tmp_path, text) == 0

    def test_option_overrides_file(self, tmp_path: pathlib.Path, ottla_session_broker: Broker) -> None:
        assert self.run(tmp_path, "bootstrap.servers=127.0.0.1:1\n", "--bootstrap", ottla_session_broker.bootstrap) == 0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("linger.mss=1", "unknown client config 'linger.mss'\n       Did you mean linger.ms?\n"),
            (
                "sasl.mechanism=PLAIN",
                "sasl.mechanism: TLS and SASL are not supported yet; only PLAINTEXT connections are\n",
            ),
        ],
    )
    def test_unsupported_configs_are_rejected(
        self, tmp_path: pathlib.Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(tmp_path, text) == 1
        assert capsys.readouterr().err.endswith(message)

    def test_missing_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["topic", "list", "--client-config", "/no/such/file"]) == 1
        assert capsys.readouterr().err == "ottla: /no/such/file: No such file or directory\n"


def test_cli_page_is_up_to_date() -> None:
    """docs/cli.md is the output of tools/document_cli.py."""
    assert (
        subprocess.run([sys.executable, str(ROOT / "tools" / "document_cli.py"), "--check"], check=False).returncode
        == 0
    )


def complete(line: str, bootstrap: str) -> list[str]:
    variables = {
        **os.environ,
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_OTTLA_COMPLETE": "complete_bash",
    }
    done = subprocess.run(
        OTTLA, env={**variables, "OTTLA_BOOTSTRAP": bootstrap}, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.split()


class TestCompletion:
    @pytest.mark.parametrize(
        ("line", "offered"),
        [
            ("ottla con", ["consume", "config"]),
            ("ottla sta", ["start"]),
            ("ottla start --eph", ["--ephemeral"]),
            ("ottla start --log-level w", ["warning"]),
            ("ottla group re", ["reset-offsets"]),
            ("ottla topic list --boot", ["--bootstrap"]),
            ("ottla config describe cl", ["client-metrics"]),
            ("ottla produce x --compression l", ["lz4"]),
            ("ottla produce x --acks a", ["all"]),
            ("ottla consume x --isolation read_c", ["read_committed"]),
        ],
    )
    def test_commands_and_options_are_completed(self, line: str, offered: list[str]) -> None:
        assert complete(line, "127.0.0.1:1") == offered

    def test_topic_names_come_from_the_broker(self, ottla_session_broker: Broker, name: str) -> None:
        ottla_session_broker.create_topic(f"{name}-a", 1)
        ottla_session_broker.create_topic(f"{name}-b", 1)
        assert complete(f"ottla topic describe {name}", ottla_session_broker.bootstrap) == [f"{name}-a", f"{name}-b"]

    def test_consume_and_produce_complete_topics_and_groups(self, ottla_session_broker: Broker, name: str) -> None:
        bootstrap = ottla_session_broker.bootstrap
        assert main(["produce", name, "--value", "x", "--bootstrap", bootstrap]) == 0
        assert main(["consume", name, "--group", f"{name}-group", "--bootstrap", bootstrap]) == 0
        for line in (f"consume {name}", f"consume {name} {name}", f"produce {name}", f"consume --follow {name}"):
            assert complete(f"ottla {line}", bootstrap) == [name], line
        for line in (f"consume --group {name}", f"consume {name} -g {name}", f"consume {name} --keys --group {name}"):
            assert complete(f"ottla {line}", bootstrap) == [f"{name}-group"], line
        assert complete(f"ottla consume -b {bootstrap} {name}", "127.0.0.1:1") == [name]

    def test_topic_names_come_from_the_broker_of_the_config_file(
        self, ottla_session_broker: Broker, name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ottla_session_broker.create_topic(name, 1)
        file = tmp_path / "client.properties"
        file.write_text(f"bootstrap.servers={ottla_session_broker.bootstrap}\n")
        assert complete(f"ottla consume --client-config {file} {name}", "") == [name]

    def test_no_names_without_a_broker(self) -> None:
        assert complete("ottla topic describe x", "127.0.0.1:1") == []

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
    def test_completion_scripts(self, shell: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["completion", shell]) == 0
        assert "_OTTLA_COMPLETE" in capsys.readouterr().out


def test_closed_stdout_is_not_an_error(ottla_session_broker: Broker, name: str) -> None:
    """As in `ottla consume | head -1`: no error, no traceback."""
    variables = {**os.environ, "OTTLA_BOOTSTRAP": ottla_session_broker.bootstrap}
    lines = b"".join(b"%d\n" % number for number in range(100_000))
    subprocess.run([*OTTLA, "produce", name], input=lines, env=variables, capture_output=True, check=True, timeout=60)
    consumer = subprocess.Popen(
        [*OTTLA, "consume", name], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert consumer.stdout is not None
    assert consumer.stderr is not None
    assert consumer.stdout.readline() == b"0\n"
    consumer.stdout.close()
    assert consumer.stderr.read() == b""
    assert consumer.wait(60) == 0


def test_ctrl_c_exits_silently(ottla_session_broker: Broker, name: str) -> None:
    ottla_session_broker.create_topic(name, 1)
    variables = {**os.environ, "OTTLA_BOOTSTRAP": ottla_session_broker.bootstrap, "PYTHONUNBUFFERED": "1"}
    consumer = subprocess.Popen(
        [*OTTLA, "consume", name, "--follow", "--from", "beginning"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert consumer.stdout is not None
    assert main(["produce", name, "--value", "x", "--bootstrap", ottla_session_broker.bootstrap]) == 0
    assert consumer.stdout.readline() == b"x\n"
    consumer.send_signal(signal.SIGINT)
    out, err = consumer.communicate(timeout=60)
    assert (consumer.returncode, out, err) == (130, b"", b"")


def test_option_overrides_config_of_file(
    tmp_path: pathlib.Path, ottla_session_broker: Broker, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={ottla_session_broker.bootstrap}\ncompression.type=nonsense\n")
    arguments = [
        "produce",
        name,
        "--value",
        "x",
        "--client-config",
        str(file),
        "--bootstrap",
        ottla_session_broker.bootstrap,
    ]
    assert main(arguments) == 1
    assert "compression.type must be one of" in capsys.readouterr().err
    assert main([*arguments, "--compression", "gzip"]) == 0


class Terminal:
    """A command on a pseudo-terminal, and its output."""

    def __init__(self, *arguments: str, bootstrap: str) -> None:
        self._own, other = pty.openpty()
        variables = {**os.environ, "OTTLA_BOOTSTRAP": bootstrap, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        self.process = subprocess.Popen([*OTTLA, *arguments], env=variables, stdin=other, stdout=other, stderr=other)
        os.close(other)
        self.output = ""

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def read_until(self, text: str, *, count: int = 1) -> None:
        while self.output.count(text) < count:
            self.output += os.read(self._own, 65536).decode()

    def read_to_end(self) -> int:
        while True:
            try:
                chunk = os.read(self._own, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not chunk:
                break
            self.output += chunk.decode()
        os.close(self._own)
        return self.process.wait(60)


class TestOnATerminal:
    def test_ctrl_c_at_a_question(self, ottla_session_broker: Broker, name: str) -> None:
        ottla_session_broker.create_topic(name, 1)
        terminal = Terminal("topic", "delete", name, bootstrap=ottla_session_broker.bootstrap)
        terminal.read_until(f"Delete {name} with all records? [y/N]: ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.read_to_end() == 130
        assert "Traceback" not in terminal.output
        assert main(["topic", "describe", name, "--bootstrap", ottla_session_broker.bootstrap]) == 0

    @pytest.mark.parametrize(
        ("answers", "code"), [(["y", "n"], 1), (["maybe", "no"], 1), (["\x04"], 1), (["y", "Yes"], 0)]
    )
    def test_internal_topics_take_two_confirmations(self, answers: list[str], code: int, name: str) -> None:
        with Broker() as broker:
            assert main(["produce", name, "--value", "x", "--bootstrap", broker.bootstrap]) == 0
            assert main(["consume", name, "--group", name, "--bootstrap", broker.bootstrap]) == 0
            terminal = Terminal("topic", "delete", "__consumer_offsets", bootstrap=broker.bootstrap)
            for number, answer in enumerate(answers, start=1):
                terminal.read_until("[y/N]: ", count=number)
                terminal.type(answer if answer == "\x04" else f"{answer}\n")
            assert terminal.read_to_end() == code
            assert ("groups lose their committed offsets" in terminal.output) == (answers[0] == "y")
            listed = ["topic", "describe", "__consumer_offsets", "--bootstrap", broker.bootstrap]
            assert main(listed) == (1 if code == 0 else 0)

    def test_tables_are_colored(self, ottla_session_broker: Broker, name: str) -> None:
        ottla_session_broker.create_topic(name, 1)
        terminal = Terminal("topic", "list", bootstrap=ottla_session_broker.bootstrap)
        assert terminal.read_to_end() == 0
        assert "\x1b[1;36mtopic" in terminal.output
        assert name in terminal.output

    def test_group_lag_follow_is_a_live_view(self, ottla_session_broker: Broker, name: str) -> None:
        bootstrap = ottla_session_broker.bootstrap
        main(["produce", name, "--value", "1", "--value", "2", "--bootstrap", bootstrap])
        main(["consume", name, "--group", name, "--max", "1", "--bootstrap", bootstrap])
        terminal = Terminal("group", "lag", name, "--follow", "--interval", "0.1", bootstrap=bootstrap)
        terminal.read_until("total lag: 1 ")
        main(["produce", name, "--value", "3", "--bootstrap", bootstrap])
        terminal.read_until("total lag: 2 ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.read_to_end() == 130
        assert "Traceback" not in terminal.output

    def test_summary_is_printed_below_the_progress_bar(
        self, ottla_session_broker: Broker, name: str, tmp_path: pathlib.Path
    ) -> None:
        (tmp_path / "lines").write_text("x\n" * 5000)
        terminal = Terminal("produce", name, str(tmp_path / "lines"), bootstrap=ottla_session_broker.bootstrap)
        assert terminal.read_to_end() == 0
        assert re.search(rf"\x1b\[2K5,000 records to {name} in [0-9.]+ s\r\n$", terminal.output)
