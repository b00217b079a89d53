"""`ottla produce`, `consume`, `group`, `perf` and `format`, against a broker."""

import json
import os
import pathlib
import time
from collections.abc import Callable

import pytest

from ottla.testing.broker import Broker
from tests.unit.cli.conftest import Result

Ottla = Callable[..., Result]
DAY_MS = 86_400_000


@pytest.fixture
def topic(ottla_session_broker: Broker, name: str) -> str:
    ottla_session_broker.create_topic(name, 1)
    return name


class TestProduce:
    def test_lines(self, ottla: Ottla, topic: str) -> None:
        sent = ottla("produce", topic, stdin=b"one\n\nthree")
        assert (sent.code, sent.out) == (0, "")
        assert sent.err.startswith(f"3 records to {topic} in ")
        assert ottla("consume", topic) == Result(0, "one\n\nthree\n", "")

    def test_files(self, ottla: Ottla, topic: str, tmp_path: pathlib.Path) -> None:
        for each in ("a", "b"):
            (tmp_path / each).write_text(f"{each}1\n{each}2\n")
        ottla("produce", topic, str(tmp_path / "a"), "-", str(tmp_path / "b"), stdin=b"between\n")
        ottla("produce", topic, str(tmp_path / "a"), "--whole")
        assert ottla("consume", topic).out == "a1\na2\nbetween\nb1\nb2\na1\na2\n\n"

    def test_all_fields_of_a_record(self, ottla: Ottla, topic: str) -> None:
        arguments = [
            "--keys",
            "--key-separator",
            "::",
            "-H",
            "a=1",
            "-H",
            "a=2",
            "--timestamp",
            "2026-01-31T12:00:00Z",
            "--null",
            "NONE",
        ]
        sent = ottla("produce", topic, *arguments, "--report", stdin=b"k::v\nl::NONE\n")
        assert sent.lines == [
            {"topic": topic, "partition": 0, "offset": offset, "timestamp": 1_769_860_800_000} for offset in (0, 1)
        ]
        headers = [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]
        same = {
            "topic": topic,
            "partition": 0,
            "timestamp": 1_769_860_800_000,
            "timestamp_type": "create",
            "headers": headers,
        }
        assert ottla("consume", topic, "--json").lines == [
            {**same, "offset": 0, "key": "k", "value": "v"},
            {**same, "offset": 1, "key": "l", "value": None},
        ]
        parts = ["--keys", "--headers", "--timestamps", "--offsets", "--null", "-", "--key-separator", "|"]
        assert ottla("consume", topic, *parts).out == "0|0|1769860800000|a=1,a=2|k|v\n0|1|1769860800000|a=1,a=2|l|-\n"

    def test_json_copies_a_topic(self, ottla: Ottla, topic: str) -> None:
        ottla("topic", "create", f"{topic}-copy", "-p", "1")
        ottla("produce", topic, "-v", "ä", "-k", "k", "-H", "h=1", "--timestamp", "@5")
        ottla("produce", topic, "--record-separator", "\\0", stdin=b"\xff\xfe\nsame record\0")
        written = ottla("consume", topic, "--json").out
        assert ottla("produce", f"{topic}-copy", "--json", stdin=written.encode()).code == 0
        assert ottla("consume", f"{topic}-copy", "--json").out == written.replace(topic, f"{topic}-copy")

    def test_lines_with_headers_and_keys_copy_a_topic(self, ottla: Ottla, topic: str) -> None:
        ottla("topic", "create", f"{topic}-copy", "-p", "1")
        ottla("produce", topic, "-v", "v", "-k", "k", "-H", "a=1", "-H", "b=x=y")
        ottla("produce", topic, "-v", "w\tx")
        parts = ["--headers", "--keys", "--null", "NULL"]
        written = ottla("consume", topic, *parts).out
        assert written == "a=1,b=x=y\tk\tv\n\tNULL\tw\tx\n"
        assert ottla("produce", f"{topic}-copy", *parts, stdin=written.encode()).code == 0
        copied, original = (ottla("consume", each, "--json").lines for each in (f"{topic}-copy", topic))
        assert [(each["key"], each["value"], each["headers"]) for each in copied] == [
            (each["key"], each["value"], each["headers"]) for each in original
        ]

    @pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
    def test_compression_and_acks(self, ottla: Ottla, topic: str, codec: str) -> None:
        assert ottla("produce", topic, "--compression", codec, "--acks", "1", stdin=b"a\nb\n").code == 0
        assert ottla("consume", topic).out == "a\nb\n"

    def test_errors(self, ottla: Ottla, topic: str) -> None:
        sent, why, advice = ottla("produce", topic, "--keys", stdin=b"k\tv\nx\n").err.splitlines()
        assert sent.startswith(f"1 record to {topic} in ")
        assert (why, advice) == (
            "ottla: line 2 has no key separator b'\\t'",
            "       Set another one with --key-separator.",
        )
        no_header = ottla("produce", topic, "--headers", stdin=b"x\tv\n")
        assert no_header.err.splitlines()[-1] == "ottla: line 1: header 'x' is not NAME=VALUE"
        assert ottla("produce", topic, "--keys", "--key-separator", "", stdin=b"x\n").code == 2
        assert ottla("produce", topic, "--keys", "--json", stdin=b"x\n").code == 2
        assert "line 1 is not JSON" in ottla("produce", topic, "--json", stdin=b"x\n").err
        assert ottla("produce", topic, "-v", "a", "file").code == 2
        assert ottla("produce", topic, "--timestamp", "soon", "-v", "a").code == 2
        assert "compression.type must be one of" in ottla("produce", topic, "--compression", "zip", "-v", "a").err
        assert ottla("produce", topic, "/no/such/file").err == "ottla: /no/such/file: No such file or directory\n"
        wrong = ottla("produce", topic, "-p", "7", "-v", "a")
        assert wrong.code == 1
        assert f"`ottla topic describe {topic}` shows its partitions." in wrong.err


class TestConsume:
    def test_start_position(self, ottla: Ottla, topic: str) -> None:
        now_ms = int(time.time() * 1000)
        for value, ago in (("old", 3), ("older", 2), ("new", 0)):
            ottla("produce", topic, "-v", value, "--timestamp", f"@{now_ms - ago * DAY_MS}")
        for where, found in {
            "beginning": "old\nolder\nnew\n",
            "end": "",
            "1": "older\nnew\n",
            "-1": "new\n",
            "-99": "old\nolder\nnew\n",
            "1h": "new\n",
            f"@{now_ms - 2 * DAY_MS}": "older\nnew\n",
            "2020-01-01": "old\nolder\nnew\n",
        }.items():
            assert ottla("consume", topic, f"--from={where}") == Result(0, found, ""), where
        assert ottla("consume", topic, "--from-beginning", "--max", "2").out == "old\nolder\n"
        assert ottla("consume", topic, "--from=soon").code == 2
        beyond = f"Offset 99 is beyond the end of {topic}-0 (3); starting at the end.\n"
        assert ottla("consume", topic, "--from=99") == Result(0, "", beyond)
        assert ottla("consume", topic, "--from=3") == Result(0, "", "")
        late = "No record has this time or a later one; starting at the end.\n"
        assert ottla("consume", topic, f"--from=@{now_ms + DAY_MS}") == Result(0, "", late)

    def test_from_beyond_the_end_names_at_most_three_partitions(self, ottla: Ottla, name: str) -> None:
        ottla("topic", "create", name, "-p", "5")
        assert ottla("consume", name, "--from=1").err == (
            f"Offset 1 is beyond the end of {name}-0 (0), {name}-1 (0), {name}-2 (0), ...; starting at the end.\n"
        )

    def test_parts_of_records_may_be_any_bytes(self, ottla: Ottla, topic: str) -> None:
        key, value, null = (os.fsdecode(each) for each in (b"k\xff", b"v\xfe", b"\xfd"))
        assert ottla("produce", topic, "--key", key, "--value", value, "--value", null, "--null", null).code == 0
        records = [(each["key_base64"], each.get("value_base64")) for each in ottla("consume", topic, "--json").lines]
        assert records == [("a/8=", "dv4="), ("a/8=", None)]

    def test_partitions_and_topics(self, ottla: Ottla, name: str) -> None:
        for each in ("a", "b"):
            ottla("topic", "create", f"{name}-{each}", "-p", "2")
            for partition in ("0", "1"):
                ottla("produce", f"{name}-{each}", "-v", f"{each}{partition}", "-p", partition)
        assert sorted(ottla("consume", f"{name}-a", f"{name}-b").out.split()) == ["a0", "a1", "b0", "b1"]
        assert sorted(ottla("consume", f"{name}-a", f"{name}-b", "-p", "1").out.split()) == ["a1", "b1"]
        assert ottla("consume", f"{name}-a", "-p", "2").code == 2

    def test_group_resumes_at_committed_offset(self, ottla: Ottla, topic: str) -> None:
        ottla("produce", topic, "-v", "1", "-v", "2", "-v", "3")
        assert ottla("consume", topic, "--group", topic, "--max", "2").out == "1\n2\n"
        assert ottla("consume", topic, "--group", topic).out == "3\n"
        assert ottla("consume", topic, "--group", topic).out == ""
        assert ottla("consume", topic, "--group", topic, "-p", "0").code == 2
        assert ottla("consume", topic, "--group", topic, "--from", "1").code == 2

    def test_format(self, ottla: Ottla, topic: str) -> None:
        ottla("produce", topic, "-v", "v", "-k", "k", "-H", "a=1", "--timestamp", "@5")
        ottla("produce", topic, "--null", "x", "-v", "x", "--timestamp", "@6")
        assert (
            ottla("consume", topic, "-f", r"%t %p %o %T %k %s %h\n").out == f"{topic} 0 0 5 k v a=1\n{topic} 0 1 6   \n"
        )
        assert ottla("consume", topic, "-f", r"%k,%s;", "--null", "NULL").out == "k,v;NULL,NULL;"
        for wrong in (["-f", "%z"], ["-f", "orders"], ["-f"], ["-f", "%s", "--json"], ["-f", "%s", "--keys"]):
            assert ottla("consume", topic, *wrong).code == 2, wrong

    def test_unknown_topic(self, ottla: Ottla, name: str) -> None:
        failed = ottla("consume", name)
        assert (failed.code, failed.out) == (1, "")
        assert failed.err.startswith(f"ottla: topic '{name}' does not exist\n")
        assert name not in ottla("topic", "list").out


class TestGroup:
    @pytest.fixture
    def group(self, ottla: Ottla, topic: str) -> str:
        """A group that has read four of ten records."""
        ottla("produce", topic, stdin=b"\n".join(b"%d" % number for number in range(10)))
        ottla("consume", topic, "--group", topic, "--max", "4")
        return topic

    def test_list_and_describe(self, ottla: Ottla, group: str) -> None:
        assert {"group": group, "state": "Empty", "type": "classic", "protocol_type": "consumer"} in [
            {**each, "type": each["type"].lower()} for each in ottla("group", "list", "--json").json
        ]
        assert [
            each["group"]
            for each in ottla("group", "list", "--state", "Stable", "--json").json
            if each["group"] == group
        ] == []
        (document,) = ottla("group", "describe", group, "--json").json
        assert (document["state"], document["members"], document["coordinator"]) == ("Empty", [], 1)
        assert ottla("group", "describe", group).out == f"{group}  Empty, 0 members, coordinator 1\n"

    def test_lag(self, ottla: Ottla, group: str) -> None:
        document = ottla("group", "lag", group, "--json").json
        assert document.pop("time") > 0
        row = {
            "group": group,
            "topic": group,
            "partition": 0,
            "committed": 4,
            "end": 10,
            "lag": 6,
            "member_id": None,
            "host": None,
        }
        assert document == {"total": 6, "partitions": [row]}
        shown = ottla("group", "lag", group).out.splitlines()
        assert shown[1].split() == [group, group, "0", "4", "10", "6", "-", "-"]
        assert shown[-1] == "total lag: 6"

    def test_lag_of_a_deleted_topic(self, ottla: Ottla, group: str) -> None:
        """The broker deletes the offsets of a deleted topic; until then they have no end offset to compare with."""
        ottla("topic", "delete", group, "--yes")
        document = ottla("group", "lag", group, "--json")
        assert (document.code, document.json["total"]) == (0, 0)

    @pytest.mark.parametrize(
        ("arguments", "new"),
        [
            (["--to-earliest"], 0),
            (["--to-latest"], 10),
            (["--to-current"], 4),
            (["--to-offset", "7"], 7),
            (["--to-offset", "99"], 10),
            (["--shift-by", "-3"], 1),
            (["--shift-by", "2"], 6),
            (["--shift-by", "-9"], 0),
            (["--to-datetime", "2020-01-01T00:00:00Z"], 0),
            (["--to-datetime", "2100-01-01T00:00:00Z"], 10),
            (["--by-duration", "1h"], 0),
        ],
    )
    def test_reset_offsets(self, ottla: Ottla, group: str, arguments: list[str], new: int) -> None:
        """First as a dry run, then executed."""
        document = {"group": group, "partitions": [{"topic": group, "partition": 0, "old": 4, "new": new}]}
        assert ottla("group", "reset-offsets", group, "--topic", group, *arguments, "--json").json == {
            **document,
            "is_executed": False,
        }
        assert ottla("group", "lag", group, "--json").json["total"] == 6
        done = ottla("group", "reset-offsets", group, "--all-topics", *arguments, "--execute", "--json")
        assert done.json == {**document, "is_executed": True}
        assert ottla("group", "lag", group, "--json").json["total"] == 10 - new

    def test_reset_is_a_dry_run_by_default(self, ottla: Ottla, group: str) -> None:
        document = ottla("group", "reset-offsets", group, "--topic", f"{group}:0", "--to-earliest")
        assert [line.split() for line in document.out.splitlines()] == [
            ["topic", "partition", "old", "new"],
            [group, "0", "4", "0"],
        ]
        assert document.err == "\nDry run, nothing was changed; pass --execute to apply.\n"

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (["--to-earliest"], 2),
            (["--all-topics"], 2),
            (["--all-topics", "--to-earliest", "--to-latest"], 2),
            (["--all-topics", "--topic", "x", "--to-earliest"], 2),
            (["--topic", "no-such-topic", "--to-earliest"], 1),
            (["--all-topics", "--by-duration", "soon"], 2),
        ],
    )
    def test_rejected_resets(self, ottla: Ottla, group: str, arguments: list[str], code: int) -> None:
        assert ottla("group", "reset-offsets", group, *arguments, "--execute").code == code
        assert ottla("group", "lag", group, "--json").json["total"] == 6

    def test_reset_creates_a_group(self, ottla: Ottla, topic: str) -> None:
        ottla("produce", topic, "-v", "a", "-v", "b")
        assert ottla("group", "reset-offsets", topic, "-t", topic, "--to-offset", "1", "--execute").code == 0
        assert ottla("consume", topic, "--group", topic).out == "b\n"

    def test_delete(self, ottla: Ottla, group: str) -> None:
        assert ottla("group", "delete", group).code == 1
        assert ottla("group", "delete", group, "--yes") == Result(0, f"{group}: deleted\n", "")
        failed = ottla("group", "describe", group)
        assert failed.err.startswith(f"ottla: group '{group}' does not exist\n")


class TestPerf:
    def test_produce_and_consume(self, ottla: Ottla, topic: str) -> None:
        sent = ottla("perf", "produce", topic, "--records", "2000", "--size", "50", "--json").json
        assert (sent["records"], sent["bytes"], set(sent["latency_ms"])) == (
            2000,
            100_000,
            {"average", "p50", "p95", "p99", "p99_9", "max"},
        )
        for arguments in ([], ["--one-by-one"]):
            read = ottla("perf", "consume", topic, *arguments, "--json").json
            assert (read["records"], read["bytes"]) == (2000, 100_000)
        shown = ottla("perf", "consume", topic).out
        assert shown.startswith("2,000 records, 0.1 MB in ")

    def test_latency(self, ottla: Ottla, topic: str) -> None:
        document = ottla("perf", "latency", topic, "--records", "5", "--json").json
        assert document["records"] == 5
        assert 0 < document["latency_ms"]["p50"] <= document["latency_ms"]["max"]

    @pytest.mark.parametrize("word", ["produce", "consume", "latency"])
    def test_unknown_topic(self, ottla: Ottla, name: str, word: str) -> None:
        assert ottla("perf", word, name).err.startswith(f"ottla: topic '{name}' does not exist\n")


class TestFormat:
    def test_format_new_directories(self, ottla: Ottla, tmp_path: pathlib.Path) -> None:
        data = tmp_path / "data"
        cluster_id = "MkU3OEVBNTcwNTJENDM2Qg"
        document = ottla("format", "--data", str(data), "--cluster-id", cluster_id, "--json").json
        assert (document["cluster_id"], document["node_id"], document["directories"][0]["is_new"]) == (
            cluster_id,
            1,
            True,
        )
        assert f"cluster.id={cluster_id}\n" in (data / "meta.properties").read_text()
        failed = ottla("format", "--data", str(data))
        assert failed == Result(
            1, "", f"ottla: {data}: already formatted\n       Pass --ignore-formatted to leave them as they are.\n"
        )
        again = ottla("format", "--data", str(data), "--ignore-formatted", "--json").json
        assert again["directories"] == [{**document["directories"][0], "is_new": False}]

    def test_format_keeps_the_clean_shutdown_marker(self, ottla: Ottla, tmp_path: pathlib.Path) -> None:
        """Checking formatted directories does not count as a start: the marker of a clean shutdown stays."""
        data = tmp_path / "data"
        assert ottla("format", "--data", str(data)).code == 0
        with Broker(data=data):
            pass
        marker = (data / ".kafka_cleanshutdown").read_bytes()
        assert ottla("format", "--data", str(data), "-g").code == 0
        assert (data / ".kafka_cleanshutdown").read_bytes() == marker
        assert json.loads(marker)["brokerEpoch"] >= 0

    def test_invalid_configs(self, ottla: Ottla, tmp_path: pathlib.Path) -> None:
        assert ottla("format", "--data", str(tmp_path / "x"), "-t", "short").err.startswith(
            "ottla: invalid cluster id 'short'"
        )
        assert ottla("format", "--set", "no.such=1", "--data", str(tmp_path / "x")).code == 1
        assert ottla("format", "a.properties", "--config", "b.properties").code == 2
