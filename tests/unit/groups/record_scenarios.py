"""Runs the scenarios against a broker and prints its responses and records.

    python -m tests.unit.groups.record_scenarios host:port DATA_DIR [SCENARIO...]

`tests/data/group_dialogues.json` was recorded from Apache Kafka, started with `group.max.size=3`,
`group.min.session.timeout.ms=500`, `group.initial.rebalance.delay.ms=0` and `offset.metadata.max.bytes=100`.
"""

import json
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ottla.wire.batches import decode_records, iterate_batches
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.schema import Message
from tests.compat.raw import RawConnection, ResponseTimeout
from tests.unit.groups.scenario_runner import TOPIC_IDS, ScenarioRun
from tests.unit.groups.scenarios import SCENARIOS


class BrokerBackend:
    """A broker, with one connection per client."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._connections: dict[str, RawConnection] = {}
        self._open: dict[str, tuple[type[Message], int]] = {}
        self._topic_ids: dict[str, bytes] = {}
        with RawConnection(address) as connection:
            topics = [CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in TOPIC_IDS]
            connection.call(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 5)
            while connection.call(FindCoordinatorRequest(coordinator_keys=["any"]), 4).coordinators[0].error_code:
                time.sleep(0.2)
            time.sleep(1)
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in TOPIC_IDS])
            self._topic_ids = {topic.name: topic.topic_id for topic in connection.call(request, 12).topics}

    def topic_id(self, name: str) -> bytes:
        return self._topic_ids[name]

    def send(self, client: str, request: Message, version: int) -> None:
        if client not in self._connections:
            self._connections[client] = RawConnection(self._address)
        self._open[client] = (type(request), version)
        self._connections[client].send(request, version)
        time.sleep(0.02)  # so that the broker handles requests of different connections in this order

    def receive(self, client: str) -> Message:
        response: Message = self._connections[client].receive(*self._open.pop(client))
        return response

    def wait(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


def written(data_dir: Path) -> Iterator[tuple[bytes, bytes | None]]:
    for path in sorted(data_dir.glob("__consumer_offsets-*/*.log")):
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            for record in decode_records(data[position : position + header.size]):
                assert record.key is not None
                yield bytes(record.key), None if record.value is None else bytes(record.value)


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    recorded = {}
    selected = sys.argv[3:]
    for scenario, versions in SCENARIOS.items():
        if selected and scenario.__name__ not in selected:
            continue
        for version in versions:
            backend = BrokerBackend((host, int(port)))
            run = ScenarioRun(backend, f"{secrets.token_hex(6)}-")
            try:
                scenario(run, version)
            except ResponseTimeout:
                sys.stderr.write(f"{scenario.__name__} v{version}: no response after {run.transcript[-1]}\n")
            backend.close()
            recorded[f"{scenario.__name__} v{version}"] = {
                "responses": run.transcript,
                "records": run.records(written(Path(sys.argv[2]))),
            }
    json.dump(recorded, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
