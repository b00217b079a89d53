"""`ottla topic`, `ottla config` and `ottla cluster`: what they do, say, ask and refuse."""

import io
import re
import sys
from collections.abc import Callable

import pytest

from ottla.cli.main import main
from tests.unit.cli.conftest import Ended

Ottla = Callable[..., Ended]


def own_configs(ottla: Ottla, name: str) -> list[str]:
    return [
        each["name"]
        for each in ottla("config", "describe", "topic", name, "--json").json
        if each["source"] == "dynamic_topic"
    ]


class TestTopic:
    def test_made_listed_described_deleted(self, ottla: Ottla, name: str) -> None:
        assert ottla("topic", "create", name, "--partitions", "2", "--config", "retention.ms=1000") == Ended(
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
        assert ottla("topic", "delete", name, "--yes") == Ended(0, f"{name}: deleted\n", "")
        assert name not in ottla("topic", "list").out

    def test_json(self, ottla: Ottla, name: str) -> None:
        (made,) = ottla("topic", "create", name, "-p", "1", "--json").json
        assert {key: made[key] for key in ("name", "partitions", "replication_factor")} == {
            "name": name, "partitions": 1, "replication_factor": 1,
        }  # fmt: skip
        assert {"name": name, "partitions": 1, "replication_factor": 1, "is_internal": False} in ottla(
            "topic", "list", "--json"
        ).json
        replicas = {"replicas": [1], "in_sync": [1], "offline": []}
        partition = {"partition": 0, "leader": 1, "leader_epoch": 0, **replicas, "earliest": 0, "latest": 0}
        assert ottla("topic", "describe", name, "--json").json == [
            {"name": name, "id": made["id"], "is_internal": False, "configs": {}, "partitions": [partition]}
        ]
        assert ottla("topic", "delete", name, "--yes", "--json").json == [name]

    def test_one_that_exists(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        refused = ottla("topic", "create", name)
        assert refused.code == 1
        assert refused.err.startswith(f"ottla: TOPIC_ALREADY_EXISTS (topic '{name}')")
        assert ottla("topic", "create", name, "--if-not-exists") == Ended(0, f"{name}: exists already\n", "")

    def test_one_that_does_not(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", f"{name}-orders")
        for words in (["describe"], ["alter", "-p", "3"], ["delete", "--yes"]):
            refused = ottla("topic", *words, f"{name}-ordres")
            assert (refused.code, refused.out) == (1, "")
            assert refused.err.splitlines() == [
                f"ottla: there is no topic '{name}-ordres'",
                f"       Did you mean {name}-orders? `ottla topic list` shows all there are.",
            ]
        assert ottla("topic", "delete", f"{name}-x", "--if-exists").out == f"{name}-x: was not there\n"

    def test_a_dry_run_makes_nothing(self, ottla: Ottla, name: str) -> None:
        assert ottla("topic", "create", name, "-p", "3", "--dry-run").out == f"{name}: could be created, 3 partitions\n"
        assert name not in ottla("topic", "list").out

    def test_nothing_is_deleted_unasked(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        assert ottla("topic", "delete", name) == Ended(
            1,
            "",
            f"ottla: Delete {name} with all records: nobody is there to be asked\n       Say --yes if that is what you want.\n",
        )
        assert name in ottla("topic", "list").out

    def test_at_a_terminal_it_asks(
        self, ottla: Ottla, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ottla("topic", "create", name)
        for answer, code, is_there in (("n\n", 1, True), ("y\n", 0, False)):
            typed = io.TextIOWrapper(io.BytesIO(answer.encode()))
            monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
            monkeypatch.setattr(sys, "stdin", typed)
            assert main(["topic", "delete", name]) == code
            assert f"Delete {name} with all records? [y/N]:" in capsys.readouterr().err
            assert (name in ottla("topic", "list").out) == is_there


class TestMorePartitions:
    def test_of_an_empty_topic_are_no_question(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        assert ottla("topic", "alter", name, "--partitions", "2") == Ended(0, f"{name}: 2 partitions\n", "")

    def test_of_one_without_keys_are_none_either(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        ottla("produce", name, "-v", "a", "-v", "b")
        assert ottla("topic", "alter", name, "--partitions", "2").code == 0

    def test_of_one_with_keys_are(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        ottla("produce", name, "-v", "a", "-k", "key")
        refused = ottla("topic", "alter", name, "--partitions", "2")
        assert refused.code == 1
        assert "most keys move to another partition" in refused.err
        assert refused.err.endswith("Say --yes if that is what you want.\n")
        assert ottla("topic", "alter", name, "--partitions", "2", "--dry-run").code == 0
        assert len(ottla("topic", "describe", name, "--json").json[0]["partitions"]) == 1
        assert ottla("topic", "alter", name, "--partitions", "2", "--yes", "--json").json == {
            "name": name,
            "partitions": 2,
            "configs": {},
        }

    def test_cannot_become_fewer(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "2")
        refused = ottla("topic", "alter", name, "--partitions", "1")
        assert refused.err.startswith(f"ottla: {name} has 2 partitions, and they cannot become fewer\n")

    def test_are_not_added_where_a_config_is_wrong(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "1")
        assert ottla("topic", "alter", name, "-p", "2", "-c", "retention.mss=1") == Ended(
            1, "", f"ottla: topic {name} has no config 'retention.mss'\n"
            f"       Did you mean retention.ms? `ottla config describe topic {name} --all` shows all there are.\n",
        )  # fmt: skip
        assert len(ottla("topic", "describe", name, "--json").json[0]["partitions"]) == 1

    def test_something_is_to_be_said(self, ottla: Ottla, name: str) -> None:
        assert ottla("topic", "alter", name).code == 2


class TestConfig:
    def test_set_shown_and_unset(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        assert (
            ottla("config", "describe", "group", name).out
            == f"group {name}: nothing is set; --all shows the defaults\n"
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
            "kind": "topic", "name": name, "changes": [{"operation": "delete", "config": "retention.ms", "value": None}],
        }  # fmt: skip
        assert own_configs(ottla, name) == ["cleanup.policy"]

    def test_by_name_with_what_it_means(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        first, second = ottla("config", "describe", "topic", name, "retention.ms", "--doc").out.splitlines()
        assert first == "retention.ms = 604800000  (default)"
        assert second.startswith("    ")
        (entry,) = ottla("config", "describe", "topic", name, "retention.ms", "--doc", "--json").json
        assert (entry["value"], entry["source"], entry["documentation"]) == ("604800000", "default", second.strip())

    @pytest.mark.parametrize("kind", ["broker", "group", "client-metrics"])
    def test_of_other_kinds(self, ottla: Ottla, kind: str, name: str) -> None:
        shown = ottla("config", "describe", kind, "1" if kind == "broker" else name, "--all", "--json")
        assert shown.code == 0, shown.err
        assert len(shown.json) > 2

    def test_a_dry_run_changes_nothing(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        told = ottla("config", "set", "topic", name, "retention.ms=5", "--dry-run").out
        assert told == f"topic {name}: could be changed: retention.ms = 5\n"
        assert own_configs(ottla, name) == []

    def test_whose_is_not_there(self, ottla: Ottla) -> None:
        assert ottla("config", "describe", "broker", "7").err == (
            "ottla: there is no broker '7'\n       There are 1, and 'default' for all of them.\n"
        )

    def test_names_that_are_none(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name)
        assert ottla("config", "describe", "topic", name, "retention").err.startswith(
            f"ottla: topic {name} has no config 'retention'"
        )
        assert ottla("config", "set", "topic", name, "retention.ms").code == 2
        wrong = ottla("config", "set", "topic", name, "retention.ms=x")
        assert wrong.code == 1
        assert "INVALID_CONFIG" in wrong.err


def test_the_cluster(ottla: Ottla) -> None:
    told = ottla("cluster", "describe", "--json").json
    assert (told["controller"], [each["id"] for each in told["brokers"]], told["quorum"]["leader"]) == (1, [1], 1)
    assert [each["lag"] for each in told["quorum"]["voters"]] == [0]
    assert {"name": "metadata.version", "level": 30, "supported_min": 7, "supported_max": 30} in told["features"]
    shown = ottla("cluster", "describe").out
    assert shown.startswith(f"cluster {told['cluster_id']}, controller 1\n\nBrokers\n")
    assert "\nQuorum: leader 1, epoch " in shown
