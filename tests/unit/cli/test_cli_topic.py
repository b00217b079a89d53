"""`ottla topic`, `ottla config` and `ottla cluster`."""

import io
import re
import sys
from collections.abc import Callable

import pytest

from ottla.cli.main import main
from tests.unit.cli.conftest import Result

Ottla = Callable[..., Result]


def own_configs(ottla: Ottla, name: str) -> list[str]:
    return [
        each["name"]
        for each in ottla("config", "describe", "topic", name, "--json").json
        if each["source"] == "dynamic_topic"
    ]


class TestTopic:
    def test_create_list_describe_delete(self, ottla: Ottla, name: str) -> None:
        assert ottla("topic", "create", name, "--partitions", "2", "--config", "retention.ms=1000") == Result(
            0, f"{name}: created, 2 partitions\n", ""
        )
        assert re.search(rf"^{name} +2 +1$", ottla("topic", "list").out, re.MULTILINE)
        described = ottla("topic", "describe", name)
        assert (described.code, described.err) == (0, "")
        first, *table = described.out.splitlines()
        assert re.fullmatch(rf"{name}  id [\w-]{{22}}  retention.ms=1000", first)
        assert [line.split() for line in table] == [
            ["partition", "leader", "epoch", "replicas", "in", "sync", "offline", "earliest", "latest"],
            ["0", "1", "0", "1", "1", "0", "0"],
            ["1", "1", "0", "1", "1", "0", "0"],
        ]
        assert ottla("topic", "delete", name, "--yes") == Result(0, f"{name}: deleted\n", "")
        assert name not in ottla("topic", "list").out

    def test_json(self, ottla: Ottla, name: str) -> None:
        (made,) = ottla("topic", "create", name, "-p", "1", "--json").json
        assert {key: made[key] for key in ("name", "partitions", "replication_factor")} == {
            "name": name,
            "partitions": 1,
            "replication_factor": 1,
        }
        assert {"name": name, "partitions": 1, "replication_factor": 1, "is_internal": False} in ottla(
            "topic", "list", "--json"
        ).json
        replicas = {"replicas": [1], "in_sync": [1], "offline": []}
        partition = {"partition": 0, "leader": 1, "leader_epoch": 0, **replicas, "earliest": 0, "latest": 0}
        assert ottla("topic", "describe", name, "--json").json == [
            {"name": name, "id": made["id"], "is_internal": False, "configs": {}, "partitions": [partition]}
        ]
        assert ottla("topic", "delete", name, "--yes", "--json").json == [name]

    def test_existing_topic(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        failed = ottla("topic", "create", name)
        assert failed.code == 1
        assert failed.err.startswith(f"ottla: TOPIC_ALREADY_EXISTS (topic '{name}')")
        assert ottla("topic", "create", name, "--if-not-exists") == Result(0, f"{name}: already exists\n", "")

    def test_missing_topic(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", f"{name}-orders")
        for arguments in (["describe"], ["alter", "-p", "3"], ["delete", "--yes"]):
            failed = ottla("topic", *arguments, f"{name}-ordres")
            assert (failed.code, failed.out) == (1, "")
            assert failed.err.splitlines() == [
                f"ottla: topic '{name}-ordres' does not exist",
                f"       Did you mean {name}-orders? `ottla topic list` shows all topics.",
            ]
        assert ottla("topic", "delete", f"{name}-x", "--if-exists").out == f"{name}-x: did not exist\n"

    def test_dry_run_creates_nothing(self, ottla: Ottla, name: str) -> None:
        assert ottla("topic", "create", name, "-p", "3", "--dry-run").out == f"{name}: can be created, 3 partitions\n"
        assert name not in ottla("topic", "list").out

    def test_delete_needs_confirmation(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        assert ottla("topic", "delete", name) == Result(
            1,
            "",
            f'ottla: cannot confirm "Delete {name} with all records": stdin is not a terminal\n'
            "       Pass --yes to skip the question.\n",
        )
        assert name in ottla("topic", "list").out

    def test_delete_asks_on_a_terminal(
        self, ottla: Ottla, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ottla("topic", "create", name)
        for answer, code, is_there in (("n\n", 1, True), ("y\n", 0, False)):
            stdin = io.TextIOWrapper(io.BytesIO(answer.encode()))
            monkeypatch.setattr(stdin, "isatty", lambda: True, raising=False)
            monkeypatch.setattr(sys, "stdin", stdin)
            assert main(["topic", "delete", name]) == code
            assert f"Delete {name} with all records? [y/N]:" in capsys.readouterr().err
            assert (name in ottla("topic", "list").out) == is_there


class TestAddPartitions:
    def test_empty_topic_needs_no_confirmation(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        assert ottla("topic", "alter", name, "--partitions", "2") == Result(0, f"{name}: 2 partitions\n", "")

    def test_records_without_keys_need_no_confirmation(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        ottla("produce", name, "-v", "a", "-v", "b")
        assert ottla("topic", "alter", name, "--partitions", "2").code == 0

    def test_records_with_keys_need_confirmation(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        ottla("produce", name, "-v", "a", "-k", "key")
        failed = ottla("topic", "alter", name, "--partitions", "2")
        assert failed.code == 1
        assert "moves most keys to another partition" in failed.err
        assert failed.err.endswith("Pass --yes to skip the question.\n")
        assert ottla("topic", "alter", name, "--partitions", "2", "--dry-run").code == 0
        assert len(ottla("topic", "describe", name, "--json").json[0]["partitions"]) == 1
        assert ottla("topic", "alter", name, "--partitions", "2", "--yes", "--json").json == {
            "name": name,
            "partitions": 2,
            "configs": {},
        }

    def test_partitions_cannot_be_reduced(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "2")
        failed = ottla("topic", "alter", name, "--partitions", "1")
        assert failed.err.startswith(f"ottla: {name} has 2 partitions; the number cannot be reduced to 1\n")

    def test_invalid_config_adds_no_partitions(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        assert ottla("topic", "alter", name, "-p", "2", "-c", "retention.mss=1") == Result(
            1,
            "",
            f"ottla: topic {name} has no config 'retention.mss'\n"
            f"       Did you mean retention.ms? `ottla config describe topic {name} --all` shows all configs.\n",
        )
        assert len(ottla("topic", "describe", name, "--json").json[0]["partitions"]) == 1

    def test_nothing_to_alter(self, ottla: Ottla, name: str) -> None:
        assert ottla("topic", "alter", name).code == 2


class TestConfig:
    def test_set_describe_unset(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        assert (
            ottla("config", "describe", "group", name).out
            == f"group {name}: no configs are set; --all shows the defaults\n"
        )
        assert ottla("config", "set", "topic", name, "retention.ms=5", "cleanup.policy=compact").out == (
            f"topic {name}: retention.ms = 5, cleanup.policy = compact\n"
        )
        assert ottla("config", "set", "topic", name, "cleanup.policy+=delete").code == 0
        shown = ottla("config", "describe", "topic", name).out
        assert [line.split() for line in shown.splitlines()] == [
            ["config", "value", "source"],
            ["cleanup.policy", "compact,delete", "dynamic", "topic"],
            ["min.insync.replicas", "1", "dynamic", "default", "broker"],
            ["retention.ms", "5", "dynamic", "topic"],
        ]
        assert ottla("config", "unset", "topic", name, "retention.ms", "--json").json == {
            "kind": "topic",
            "name": name,
            "changes": [{"operation": "delete", "config": "retention.ms", "value": None}],
        }
        assert own_configs(ottla, name) == ["cleanup.policy"]

    def test_documentation(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        first, second = ottla("config", "describe", "topic", name, "retention.ms", "--doc").out.splitlines()
        assert first == "retention.ms = 604800000  (default)"
        assert second.startswith("    ")
        (entry,) = ottla("config", "describe", "topic", name, "retention.ms", "--doc", "--json").json
        assert (entry["value"], entry["source"], entry["documentation"]) == ("604800000", "default", second.strip())

    @pytest.mark.parametrize("kind", ["broker", "group", "client-metrics"])
    def test_other_resource_types(self, ottla: Ottla, kind: str, name: str) -> None:
        shown = ottla("config", "describe", kind, "1" if kind == "broker" else name, "--all", "--json")
        assert shown.code == 0, shown.err
        assert len(shown.json) > 2

    def test_dry_run_changes_nothing(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        document = ottla("config", "set", "topic", name, "retention.ms=5", "--dry-run").out
        assert document == f"topic {name}: valid: retention.ms = 5\n"
        assert own_configs(ottla, name) == []

    def test_missing_broker(self, ottla: Ottla) -> None:
        assert ottla("config", "describe", "broker", "7").err == (
            "ottla: broker '7' does not exist\n       Brokers: 1; 'default' is the cluster-wide default.\n"
        )

    def test_unknown_and_invalid_configs(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        assert ottla("config", "describe", "topic", name, "retention").err.startswith(
            f"ottla: topic {name} has no config 'retention'"
        )
        assert ottla("config", "set", "topic", name, "retention.ms").code == 2
        wrong = ottla("config", "set", "topic", name, "retention.ms=x")
        assert wrong.code == 1
        assert "INVALID_CONFIG" in wrong.err


def test_cluster_describe(ottla: Ottla) -> None:
    document = ottla("cluster", "describe", "--json").json
    assert (document["controller"], [each["id"] for each in document["brokers"]], document["quorum"]["leader"]) == (
        1,
        [1],
        1,
    )
    assert [each["lag"] for each in document["quorum"]["voters"]] == [0]
    assert {"name": "metadata.version", "level": 30, "supported_min": 7, "supported_max": 30} in document["features"]
    shown = ottla("cluster", "describe").out
    assert shown.startswith(f"cluster {document['cluster_id']}, controller 1\n\nBrokers\n")
    assert "\nQuorum: leader 1, epoch " in shown
