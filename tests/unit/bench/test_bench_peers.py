"""Starting brokers as processes, and saying why one cannot be had."""

import os
import socket
import sys

import pytest

from bench import peers


@pytest.fixture
def fresh_search(monkeypatch):
    """Java and the jars are looked for once a process; here again."""
    peers.java_command.cache_clear()
    peers.kafka_class_path.cache_clear()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    yield
    peers.java_command.cache_clear()
    peers.kafka_class_path.cache_clear()


def command(directory, name, text):
    path = directory / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_java_the_peer_says_so(fresh_search, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(peers.PeerUnavailable, match="no java"):
        peers.ApacheKafka()


def test_an_old_java_is_refused(fresh_search, monkeypatch, tmp_path):
    command(tmp_path, "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    with pytest.raises(peers.PeerUnavailable, match=r"is Java 11, Kafka .* needs 17"):
        peers.java_command()


def test_without_jars_and_maven_the_peer_says_so(fresh_search, monkeypatch, tmp_path):
    command(tmp_path, "java", """echo 'openjdk version "21" 2023-09-19' >&2""")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KAFKA_JARS", str(tmp_path / "jars"))
    with pytest.raises(peers.PeerUnavailable, match="no mvn"):
        peers.kafka_class_path()


def test_what_maven_says_is_passed_on(fresh_search, monkeypatch, tmp_path):
    command(tmp_path, "java", """echo 'openjdk version "21" 2023-09-19' >&2""")
    command(tmp_path, "mvn", "echo no network; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    monkeypatch.setenv("KAFKA_JARS", str(tmp_path / "jars"))
    with pytest.raises(peers.PeerUnavailable, match="no network"):
        peers.kafka_class_path()
    assert not (tmp_path / "jars" / "complete").exists()


class Silent(peers.BrokerProcess):
    """A process that ends with what it has to log."""

    name = "silent"

    def command(self):
        return [sys.executable, "-c", "print('the disk is on fire'); raise SystemExit(3)"]


def test_a_broker_that_ends_early_is_quoted_and_cleaned_up():
    broker = Silent()
    home = broker.home
    with pytest.raises(RuntimeError, match=r"(?s)ended with 3.*the disk is on fire"), broker:
        pass
    assert not home.exists()


def test_a_free_port_can_be_bound():
    port = peers.free_port()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))


def test_ottla_gets_its_address_directory_and_settings(tmp_path):
    script = tmp_path / "ottla"
    script.touch()
    broker = peers.OttlaProcess(
        port=4711, data_dir=tmp_path / "data", settings={"num.partitions": "4"}, python=tmp_path / "python"
    )
    settings = [
        "--set",
        "listeners=PLAINTEXT://127.0.0.1:4711",
        "--set",
        f"log.dirs={tmp_path / 'data'}",
        "--set",
        "num.partitions=4",
    ]
    assert broker.command() == [str(script), "start", *settings]


def test_an_ephemeral_ottla_chooses_its_own_directory(tmp_path):
    script = tmp_path / "ottla"
    script.touch()
    broker = peers.OttlaProcess(port=4711, arguments=["--ephemeral"], python=tmp_path / "python")
    assert broker.command() == [str(script), "start", "--ephemeral", "--set", "listeners=PLAINTEXT://127.0.0.1:4711"]
