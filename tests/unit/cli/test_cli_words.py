"""What holds for all words: late loading, exit codes, help, errors that say what to do, completion, and the page about them."""

import os
import pathlib
import pty
import re
import signal
import subprocess
import sys

import pytest

from ottla.cli.app import USAGE_ERROR_TYPE
from ottla.cli.command_table import BUILTIN_COMMANDS, LAZY_COMMANDS
from ottla.cli.main import main
from ottla.testing.broker import Broker

ROOT = pathlib.Path(__file__).parents[3]
OTTLA = [sys.executable, "-m", "ottla"]


@pytest.mark.parametrize("words", [["start", "--help"], ["version"], ["--help"]], ids=" ".join)
def test_a_broker_does_not_pay_for_the_other_words(words: list[str]) -> None:
    """`ottla start` is as fast as if there were no typer and no rich, nor a client."""
    program = (
        "import sys\nfrom ottla.cli.main import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('typer', 'rich', 'click', 'pydantic') or name == 'ottla.client'],"
        " file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stderr == "[]\n"


def test_a_broker_that_serves_has_not_loaded_them() -> None:
    program = (
        "import sys\nimport ottla.cli.start, ottla.node.main\nfrom ottla.cli.main import make_parser\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('typer', 'rich', 'click', 'pydantic')])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "[]\n"


@pytest.mark.parametrize("word", LAZY_COMMANDS)
def test_each_word_has_help(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "--help"]) == 0
    assert f"Usage: ottla {word}" in capsys.readouterr().out


def test_all_words_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    listed = re.findall(r"^    ([a-z]+)\s+(\S+)", shown, re.MULTILINE)
    summaries = {**BUILTIN_COMMANDS, **{name: word.summary for name, word in LAZY_COMMANDS.items()}}
    assert listed == [(name, summary.split()[0]) for name, summary in summaries.items()]


@pytest.mark.parametrize(
    ("words", "message", "see"),
    [
        ("topic list --nothing", "No such option: --nothing", "ottla topic list"),
        ("topic describe", "Missing argument 'TOPIC...'", "ottla topic describe"),
        ("topic make x", "No such command 'make'.", "ottla topic"),
    ],
)
def test_called_wrongly(words: str, message: str, see: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    first, second = output.err.splitlines()
    assert first.startswith(f"ottla: {message.rstrip('.')}")
    assert second == f"       see: {see} --help"


def test_what_typer_raises_has_the_parts_that_are_used() -> None:
    assert USAGE_ERROR_TYPE.__name__ == "ClickException"
    assert {"format_message", "show", "exit_code"} <= set(dir(USAGE_ERROR_TYPE))


def test_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        "ottla: no broker answers at 127.0.0.1:1 (connection refused)\n"
        "       Start one with `ottla start`, or say where it is with --bootstrap HOST:PORT or OTTLA_BOOTSTRAP.\n"
    )


@pytest.mark.parametrize("address", ["nonsense", "a:b", ":1"])
def test_an_address_that_is_none(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "--bootstrap", address]) == 1
    assert (
        capsys.readouterr().err
        == f"ottla: bootstrap.servers: '{address}' is not host:port, for example '127.0.0.1:9092'.\n"
    )


class TestClientConfig:
    def run(self, tmp_path: pathlib.Path, text: str, *words: str) -> int:
        file = tmp_path / "client.properties"
        file.write_text(text)
        return main(["topic", "list", "--client-config", str(file), *words])

    def test_its_broker_is_used_and_its_configs_go_to_whom_they_belong(
        self, tmp_path: pathlib.Path, ottla_session_broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("OTTLA_BOOTSTRAP", raising=False)
        text = f"bootstrap.servers={ottla_session_broker.bootstrap}\nlinger.ms=7\nkey.serializer=org.example.Java\nretries=3\n"
        assert self.run(tmp_path, text) == 0

    def test_the_option_wins(self, tmp_path: pathlib.Path, ottla_session_broker: Broker) -> None:
        assert self.run(tmp_path, "bootstrap.servers=127.0.0.1:1\n", "--bootstrap", ottla_session_broker.bootstrap) == 0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("linger.mss=1", "no client has a config 'linger.mss'\n       Did you mean linger.ms?\n"),
            ("sasl.mechanism=PLAIN", "sasl.mechanism: connections are PLAINTEXT only so far, without TLS or SASL\n"),
        ],
    )
    def test_what_cannot_be_is_said(
        self, tmp_path: pathlib.Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(tmp_path, text) == 1
        assert capsys.readouterr().err.endswith(message)

    def test_a_file_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["topic", "list", "--client-config", "/no/such/file"]) == 1
        assert capsys.readouterr().err == "ottla: /no/such/file: No such file or directory\n"


def test_the_page_says_what_help_says() -> None:
    """`docs/cli.md` is what `tools/document_cli.py` writes."""
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
    ended = subprocess.run(
        OTTLA, env={**variables, "OTTLA_BOOTSTRAP": bootstrap}, capture_output=True, text=True, timeout=60, check=True
    )
    return ended.stdout.split()


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
        ],
    )
    def test_words_and_options(self, line: str, offered: list[str]) -> None:
        assert complete(line, "127.0.0.1:1") == offered

    def test_names_are_asked_of_the_broker(self, ottla_session_broker: Broker, name: str) -> None:
        ottla_session_broker.create_topic(f"{name}-a", 1)
        ottla_session_broker.create_topic(f"{name}-b", 1)
        assert complete(f"ottla topic describe {name}", ottla_session_broker.bootstrap) == [f"{name}-a", f"{name}-b"]

    def test_without_a_broker_nothing_is_offered(self) -> None:
        assert complete("ottla topic describe x", "127.0.0.1:1") == []

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
    def test_scripts(self, shell: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["completion", shell]) == 0
        assert "_OTTLA_COMPLETE" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_failure(ottla_session_broker: Broker, name: str) -> None:
    """As `ottla consume | head -1`: no complaint, no traceback."""
    variables = {**os.environ, "OTTLA_BOOTSTRAP": ottla_session_broker.bootstrap}
    lines = b"".join(b"%d\n" % number for number in range(100_000))
    subprocess.run([*OTTLA, "produce", name], input=lines, env=variables, capture_output=True, check=True, timeout=60)
    reading = subprocess.Popen([*OTTLA, "consume", name], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reading.stdout is not None
    assert reading.stderr is not None
    assert reading.stdout.readline() == b"0\n"
    reading.stdout.close()
    assert reading.stderr.read() == b""
    assert reading.wait(60) == 0


def test_an_interrupt_ends_it_without_a_word(ottla_session_broker: Broker, name: str) -> None:
    ottla_session_broker.create_topic(name, 1)
    variables = {**os.environ, "OTTLA_BOOTSTRAP": ottla_session_broker.bootstrap, "PYTHONUNBUFFERED": "1"}
    following = subprocess.Popen(
        [*OTTLA, "consume", name, "--follow", "--from", "beginning"],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert following.stdout is not None
    assert main(["produce", name, "--value", "x", "--bootstrap", ottla_session_broker.bootstrap]) == 0
    assert following.stdout.readline() == b"x\n"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=60)
    assert (following.returncode, out, err) == (130, b"", b"")


def test_a_config_of_the_file_holds_where_no_option_says_otherwise(
    tmp_path: pathlib.Path, ottla_session_broker: Broker, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={ottla_session_broker.bootstrap}\ncompression.type=nonsense\n")
    words = [
        "produce",
        name,
        "--value",
        "x",
        "--client-config",
        str(file),
        "--bootstrap",
        ottla_session_broker.bootstrap,
    ]
    assert main(words) == 1
    assert "compression.type must be one of" in capsys.readouterr().err
    assert main([*words, "--compression", "gzip"]) == 0


class Terminal:
    """A command at a terminal, and what it has drawn there."""

    def __init__(self, *words: str, bootstrap: str) -> None:
        self.ours, theirs = pty.openpty()
        variables = {**os.environ, "OTTLA_BOOTSTRAP": bootstrap, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
        self.process = subprocess.Popen([*OTTLA, *words], env=variables, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.drawn = ""

    def read_until(self, text: str) -> None:
        while text not in self.drawn:
            self.drawn += os.read(self.ours, 65536).decode()

    def read_to_end(self) -> int:
        while True:
            try:
                chunk = os.read(self.ours, 65536)
            except OSError:  # how Linux says that nobody writes any more
                break
            if not chunk:
                break
            self.drawn += chunk.decode()
        os.close(self.ours)
        return self.process.wait(60)


class TestAtATerminal:
    def test_tables_have_colours(self, ottla_session_broker: Broker, name: str) -> None:
        ottla_session_broker.create_topic(name, 1)
        terminal = Terminal("topic", "list", bootstrap=ottla_session_broker.bootstrap)
        assert terminal.read_to_end() == 0
        assert "\x1b[1;36mtopic" in terminal.drawn
        assert name in terminal.drawn

    def test_lag_is_a_live_view(self, ottla_session_broker: Broker, name: str) -> None:
        bootstrap = ottla_session_broker.bootstrap
        main(["produce", name, "--value", "1", "--value", "2", "--bootstrap", bootstrap])
        main(["consume", name, "--group", name, "--max", "1", "--bootstrap", bootstrap])
        terminal = Terminal("group", "lag", name, "--follow", "--interval", "0.1", bootstrap=bootstrap)
        terminal.read_until("lag in all: 1 ")
        main(["produce", name, "--value", "3", "--bootstrap", bootstrap])
        terminal.read_until("lag in all: 2 ")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.read_to_end() == 130
        assert "Traceback" not in terminal.drawn

    def test_what_was_sent_is_told_below_the_bar(
        self, ottla_session_broker: Broker, name: str, tmp_path: pathlib.Path
    ) -> None:
        (tmp_path / "lines").write_text("x\n" * 5000)
        terminal = Terminal("produce", name, str(tmp_path / "lines"), bootstrap=ottla_session_broker.bootstrap)
        assert terminal.read_to_end() == 0
        assert re.search(rf"\x1b\[2K5,000 records to {name} in [0-9.]+ s\r\n$", terminal.drawn)
