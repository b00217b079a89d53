"""`ottla profile` and `--profile`: bootstrap servers and client configs by name."""

import os
import pathlib
from collections.abc import Callable

import pytest

from ottla.testing.broker import Broker
from tests.unit.cli.conftest import Result
from tests.unit.cli.test_cli_commands import complete

Ottla = Callable[..., Result]


@pytest.fixture(autouse=True)
def directory(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A directory of profiles for each test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OTTLA_PROFILE", raising=False)
    return tmp_path / "ottla" / "profiles"


def test_set_show_list_delete(ottla: Ottla, directory: pathlib.Path) -> None:
    assert ottla("profile", "list") == Result(0, "", "")
    assert ottla("profile", "set", "staging", "bootstrap.servers=a:1,b:2", "linger.ms=7").code == 0
    assert ottla("profile", "set", "staging", "linger.ms=8", r"client.id= C:\x") == Result(0, "", "")
    ottla("profile", "set", "other", "acks=1")
    assert (directory / "staging.properties").stat().st_mode & 0o777 == 0o600
    assert ottla("profile", "show", "staging").out == "bootstrap.servers=a:1,b:2\nclient.id=C:\\x\nlinger.ms=8\n"
    assert ottla("profile", "list", "--json").json == [
        {"profile": "other", "bootstrap": None},
        {"profile": "staging", "bootstrap": "a:1,b:2"},
    ]
    assert ottla("profile", "set", "staging", "--unset", "client.id").code == 0
    assert ottla("profile", "show", "staging", "--json").json == {"bootstrap.servers": "a:1,b:2", "linger.ms": "8"}
    assert ottla("profile", "delete", "staging") == Result(0, "staging: deleted\n", "")
    assert os.listdir(directory) == ["other.properties"]
    assert ottla("profile", "delete", "other", "staging").code == 1
    assert os.listdir(directory) == ["other.properties"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("set", "a", "linger.mss=1"),
            1,
            "profile: unknown client config 'linger.mss'\n       Did you mean linger.ms?",
        ),
        (("set", "a", "linger.ms=soon"), 1, "linger.ms must be a number"),
        (("set", "a", "bootstrap.servers=nonsense"), 1, "bootstrap.servers: 'nonsense' is not host:port"),
        (("set", "a", "sasl.mechanism=PLAIN"), 1, "profile: sasl.mechanism: TLS and SASL are not supported yet"),
        (("set", "a"), 2, "no configs; set one, such as bootstrap.servers=127.0.0.1:9092"),
        (("set", "a", "linger.ms"), 2, "'linger.ms' is not NAME=VALUE"),
        (("set", "../a", "linger.ms=1"), 1, "'../a' is not a name of a profile"),
        (("set", "a" * 101, "linger.ms=1"), 1, f"'{'a' * 100}...' is not a name of a profile: use at most 100 letters"),
        (("set", "", "linger.ms=1"), 1, "'' is not a name of a profile"),
        (("set", "known", "--unset", "acks"), 1, "profile 'known' has no config 'acks'"),
        (("show", "knwon"), 1, "profile 'knwon' does not exist\n       Did you mean known?"),
        (("delete", "zzz"), 1, "profile 'zzz' does not exist\n       `ottla profile list` shows all profiles."),
    ],
)
def test_errors(ottla: Ottla, directory: pathlib.Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    ottla("profile", "set", "known", "linger.ms=1")
    failed = ottla("profile", *arguments)
    assert (failed.code, failed.out) == (code, "")
    assert failed.err.startswith(f"ottla: {message}")
    assert os.listdir(directory) == ["known.properties"]


def test_profile_selects_broker_and_configs(
    ottla: Ottla, ottla_session_broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ottla_session_broker.create_topic(name, 1)
    ottla("profile", "set", "here", f"bootstrap.servers={ottla_session_broker.bootstrap}", "acks=0")
    ottla("profile", "set", "nowhere", "bootstrap.servers=127.0.0.1:1")
    monkeypatch.setenv("OTTLA_BOOTSTRAP", "127.0.0.1:2")
    assert ottla("topic", "describe", name, "--profile", "here").code == 0
    send = ("produce", name, "-v", "a", "--report", "--profile", "here")
    assert ottla(*send).json["offset"] == -1
    assert ottla(*send, "--acks", "all").json["offset"] >= 0
    assert "127.0.0.1:1 " in ottla("topic", "list", "--profile", "nowhere").err
    arguments = ("--profile", "nowhere", "--bootstrap", ottla_session_broker.bootstrap)
    assert ottla("topic", "describe", name, *arguments).code == 0
    assert "profile 'her' does not exist" in ottla("topic", "list", "--profile", "her").err


def test_variables_and_files(
    ottla: Ottla, ottla_session_broker: Broker, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OTTLA_BOOTSTRAP overrides the profile of OTTLA_PROFILE; a file replaces it."""
    ottla("profile", "set", "nowhere", "bootstrap.servers=127.0.0.1:1")
    monkeypatch.setenv("OTTLA_PROFILE", "nowhere")
    assert ottla("topic", "list").code == 0
    monkeypatch.delenv("OTTLA_BOOTSTRAP")
    assert "127.0.0.1:1 " in ottla("topic", "list").err
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={ottla_session_broker.bootstrap}\n")
    assert ottla("topic", "list", "--client-config", str(file)).code == 0
    failed = ottla("topic", "list", "--client-config", str(file), "--profile", "nowhere")
    assert failed.err.startswith("ottla: --profile and --client-config cannot be combined")


def test_profile_names_and_topics_of_a_profile_are_completed(
    ottla: Ottla, ottla_session_broker: Broker, name: str
) -> None:
    ottla_session_broker.create_topic(name, 1)
    ottla("profile", "set", "here", f"bootstrap.servers={ottla_session_broker.bootstrap}")
    assert complete("ottla profile show h", "127.0.0.1:1") == ["here"]
    assert complete("ottla topic list --profile ", "127.0.0.1:1") == ["here"]
    assert complete(f"ottla topic describe --profile here {name}", "127.0.0.1:1") == [name]
