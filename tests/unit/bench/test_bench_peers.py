"""Starting brokers as processes, and reasons why a peer is not available."""

import os
import socket
import sys

import pytest

from bench import peers


@pytest.fixture
def fresh_search(monkeypatch):
    """Clear the caches of the Java and jar lookups."""
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


def test_peer_is_unavailable_without_java(fresh_search, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(peers.PeerUnavailable, match="no java"):
        peers.ApacheKafka()


def test_old_java_is_rejected(fresh_search, monkeypatch, tmp_path):
    command(tmp_path, "java", """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    with pytest.raises(peers.PeerUnavailable, match=r"is Java 11, Kafka .* needs 17"):
        peers.java_command()


def test_peer_is_unavailable_without_jars_and_maven(fresh_search, monkeypatch, tmp_path):
    command(tmp_path, "java", """echo 'openjdk version "21" 2023-09-19' >&2""")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KAFKA_JARS", str(tmp_path / "jars"))
    with pytest.raises(peers.PeerUnavailable, match="no mvn"):
        peers.kafka_class_path()


def test_output_of_maven_is_in_the_error(fresh_search, monkeypatch, tmp_path):
    command(tmp_path, "java", """echo 'openjdk version "21" 2023-09-19' >&2""")
    command(tmp_path, "mvn", "echo no network; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    monkeypatch.setenv("KAFKA_JARS", str(tmp_path / "jars"))
    with pytest.raises(peers.PeerUnavailable, match="no network"):
        peers.kafka_class_path()
    assert not (tmp_path / "jars" / "complete").exists()


class FailingProcess(peers.BrokerProcess):
    """A broker process that exits with an error message."""

    name = "failing"

    def command(self):
        return [sys.executable, "-c", "print('the disk is on fire'); raise SystemExit(3)"]


def test_output_of_a_failed_start_is_in_the_error():
    broker = FailingProcess()
    home = broker.home
    with pytest.raises(RuntimeError, match=r"(?s)exited with 3.*the disk is on fire"), broker:
        pass
    assert not home.exists()


def test_free_port_can_be_bound():
    port = peers.free_port()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))


def test_ottla_command_contains_address_directory_and_settings(tmp_path):
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


def test_ephemeral_ottla_gets_no_directory(tmp_path):
    script = tmp_path / "ottla"
    script.touch()
    broker = peers.OttlaProcess(port=4711, arguments=["--ephemeral"], python=tmp_path / "python")
    assert broker.command() == [str(script), "start", "--ephemeral", "--set", "listeners=PLAINTEXT://127.0.0.1:4711"]
