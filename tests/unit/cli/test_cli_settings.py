"""Options of `ottla start` become node configs; usage errors print no traceback."""

import pathlib

import pytest

from ottla.cli.main import main, make_parsers
from ottla.cli.settings import UsageError, node_settings
from ottla.node.config import node_config


def settings(*options: str, temporary: str | None = None) -> dict[str, str]:
    arguments = make_parsers()["start"].parse_args(options)
    return node_settings(arguments, temporary=temporary, canonical_host=lambda: "machine.example")[0]


def test_defaults_listen_on_loopback_only() -> None:
    assert settings() == {
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "log.dirs": "ottla-data",
        "group.initial.rebalance.delay.ms": "0",
    }


@pytest.mark.parametrize(
    ("options", "listeners", "advertised"),
    [
        (["--port", "9192"], "PLAINTEXT://127.0.0.1:9192", "PLAINTEXT://127.0.0.1:9192"),
        (["--port", "0"], "PLAINTEXT://127.0.0.1:0", "PLAINTEXT://127.0.0.1:0"),
        (["--host", "localhost"], "PLAINTEXT://localhost:9092", "PLAINTEXT://localhost:9092"),
        (["--host", "::1"], "PLAINTEXT://[::1]:9092", "PLAINTEXT://[::1]:9092"),
        (["--host", "0.0.0.0"], "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://machine.example:9092"),
        (["--host", "*"], "PLAINTEXT://:9092", "PLAINTEXT://machine.example:9092"),
        (["--host", "0.0.0.0", "--advertise", "outside"], "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://outside:9092"),
        (["--advertise", "outside:1"], "PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://outside:1"),
        (["--advertise", "[::1]:1"], "PLAINTEXT://127.0.0.1:9092", "PLAINTEXT://[::1]:1"),
        (["--advertise", "fe80::1", "--port", "7"], "PLAINTEXT://127.0.0.1:7", "PLAINTEXT://[fe80::1]:7"),
        (["--set", "listeners=PLAINTEXT://a:1", "--port", "2"], "PLAINTEXT://a:2", "PLAINTEXT://a:2"),
    ],
)
def test_listeners(options: list[str], listeners: str, advertised: str) -> None:
    found = settings(*options)
    assert (found["listeners"], found["advertised.listeners"]) == (listeners, advertised)
    node_config(found)


def test_options_change_the_first_client_listener_of_a_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "controller.listener.names=CONTROLLER\nlisteners=CONTROLLER://:9093,PLAINTEXT://:9092\n"
        "advertised.listeners=PLAINTEXT://localhost:9092\nlog.dirs=/a\nmetadata.log.dir=/m\n"
    )
    found = settings(str(file), "--port", "5", "--data", "here")
    assert found["listeners"] == "CONTROLLER://:9093,PLAINTEXT://:5"
    assert found["advertised.listeners"] == "PLAINTEXT://localhost:5"
    assert found["log.dirs"] == "here"
    assert "metadata.log.dir" not in found
    assert settings(str(file))["listeners"] == "CONTROLLER://:9093,PLAINTEXT://:9092"


def test_set_overrides_the_file_and_is_trimmed(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\nlog.dirs=/a\n")
    assert settings(str(file), "--set", "num.partitions = 4", "--set", "x=a=b") == {
        "num.partitions": "4",
        "log.dirs": "/a",
        "x": "a=b",
    }


def test_ephemeral_overrides_the_file_but_not_set() -> None:
    assert settings("--ephemeral", temporary="/t")["log.dirs"] == "/t"
    with pytest.raises(UsageError, match="--ephemeral uses a temporary directory"):
        settings("--ephemeral", "--set", "log.dirs=/a", temporary="/t")


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "num.partitions"],
        ["--set", "=4"],
        ["--advertise", "a:b"],
        ["--advertise", ":1"],
        ["--set", "controller.listener.names=PLAINTEXT", "--port", "1"],
    ],
)
def test_usage_errors(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["start", *options]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("ottla: ")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    ["start --port x", "start --port 65536", "begin", "start --data a --ephemeral", "start --log-level loud"],
)
def test_argparse_errors(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options.split()) == 2
    assert capsys.readouterr().err.startswith("ottla: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--set", "num.partition=4"],
            "--set: num.partition: unknown config; did you mean num.partitions?",
        ),
        (["--set", "num.partitions=0"], "--set: num.partitions = '0': must be at least 1"),
        (
            ["--set", "listeners=SSL://a:1"],
            "--set: listeners = 'SSL://a:1': listener SSL is SSL; only PLAINTEXT listeners are supported",
        ),
        (
            ["--set", "listeners=a", "--port", "1"],
            "listeners = 'a': 'a' must be NAME://host:port, such as PLAINTEXT://localhost:9092",
        ),
        (["/no/such/file"], "/no/such/file: cannot be read: No such file or directory"),
    ],
)
def test_invalid_config_is_reported_on_one_line(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["start", *options]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", f"ottla: {message}\n")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from ottla import __version__

    assert main(["version"]) == 0
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ottla {__version__}\n" * 2


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "ottla start --ephemeral" in capsys.readouterr().out


def test_windows_is_rejected(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    assert main(["start"]) == 1
    assert (
        capsys.readouterr().err
        == "ottla: Windows is not supported; run Ottla in WSL 2 (Linux is supported, macOS is untested).\n"
    )
