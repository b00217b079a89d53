"""Runs a case against a broker: fills in placeholders and normalizes responses."""

import secrets
import time
from collections.abc import Callable
from typing import Any

from ottla.base.ids import ZERO_UUID
from ottla.wire.batches import build_batch
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.schema import Message
from tests.compat.catalog.case import (
    LAST_SESSION,
    NODE,
    Await,
    Batch,
    Call,
    Case,
    Disconnect,
    Fill,
    NewProducer,
    NewTopic,
    RawFrame,
    SendOnly,
    Start,
    Step,
)
from tests.compat.catalog.normalize import Normalizer
from tests.compat.raw import ConnectionClosed, RawConnection, read_response

WAIT_SECONDS_MAX = 15.0
"""Timeout of waits."""


class Run:
    """Runs one case in one version on one connection."""

    def __init__(self, address: tuple[str, int], version: int) -> None:
        self._address = address
        self._version = version
        self._prefix = f"case-{secrets.token_hex(5)}"
        self._topic_ids: dict[str, bytes] = {}
        self._names: dict[str, None] = {}
        self._producers: dict[str, int] = {}
        self._session_id = 0
        self._node_id = 0
        self._connection = RawConnection(address)
        self._others: dict[str, RawConnection] = {}
        self._started: dict[str, tuple[Message, int]] = {}
        self._members: dict[str, str] = {}
        self._is_about_groups = False

    def responses(self, case: Case) -> list[Any]:
        try:
            requests = [step.request for step in (*case.before, *case.steps) if isinstance(step, Call | Start)]
            self._is_about_groups = any(
                hasattr(request, "group_id") or hasattr(request, "groups") for request in requests
            )
            for step in case.before:
                self._run_step(step)
            return [response for step in case.steps if (response := self._run_step(step)) is not None]
        finally:
            self._clean_up()

    def _run_step(self, step: Step) -> Any:
        match step:
            case NewTopic(name, partitions, configs):
                self._create(name, partitions, dict(configs))
            case NewProducer(name):
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                response = self._connection.call(request, 5)
                assert response.error_code == 0, response
                self._producers[name] = response.producer_id
            case Fill(batch, topic, partition):
                data = [PartitionProduceData(index=partition, records=self._fill(batch))]
                topics = [TopicProduceData(name=self._fill(f"${topic}"), partition_data=data)]
                response = self._connection.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics), 11)
                assert response.responses[0].partition_responses[0].error_code == 0, response
            case SendOnly(request, version):
                self._connection.send(self._fill(request), self._version if version is None else version)
            case Call(request, version, until, on, member):
                request_version = self._version if version is None else version
                filled = self._fill(request if isinstance(request, Message) else request(request_version))
                return self._call(filled, request_version, until, on, member)
            case Start(request, version, on):
                started = self._fill(request), self._version if version is None else version
                self._started[on] = started
                self._connection_named(on).send(*started)
            case Await(on, member):
                started_request, version = self._started.pop(on)
                return self._receive(self._connection_named(on), type(started_request), version, member)
            case Disconnect(on):
                self._others.pop(on).close()
            case RawFrame(contents, read_as, version):
                return self._send_raw(contents, read_as, version)
        return None

    def _call(
        self, request: Message, version: int, until: Callable[[Any], bool] | None, on: str, member: str | None
    ) -> Any:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        connection = self._connection_named(on)
        try:
            while until is not None and not until(connection.call(request, version)) and time.monotonic() < deadline:
                time.sleep(0.005)
            connection.send(request, version)
        except ConnectionClosed:
            return self._closed(on)
        return self._receive(connection, type(request), version, member)

    def _receive(self, connection: RawConnection, requested: type[Message], version: int, member: str | None) -> Any:
        try:
            response = connection.receive(requested, version)
        except ConnectionClosed:
            return self._closed(next((name for name, other in self._others.items() if other is connection), ""))
        self._record_ids(response)
        if member is not None:
            self._members[member] = response.member_id
        return self._normalizer().message(response, version)

    def _closed(self, on: str) -> str:
        if on:
            del self._others[on]
        else:
            self._connection = RawConnection(self._address)
        return "closed"

    def _connection_named(self, name: str) -> RawConnection:
        if not name:
            return self._connection
        if name not in self._others:
            self._others[name] = RawConnection(self._address)
        return self._others[name]

    def _normalizer(self) -> Normalizer:
        return Normalizer(self._prefix, self._topic_ids, self._members)

    def _send_raw(self, contents: bytes, read_as: type[Message], version: int) -> Any:
        try:
            self._connection.send_frame(contents)
            response = read_response(read_as, version, self._connection.receive_frame())[1]
        except ConnectionClosed:
            self._connection = RawConnection(self._address)
            return "closed"
        return self._normalizer().message(response, version)

    def _record_ids(self, response: Any) -> None:
        self._session_id = getattr(response, "session_id", 0) or self._session_id
        for topic in getattr(response, "topics", []):
            name = getattr(topic, "name", None)
            if name and name.startswith(self._prefix) and getattr(topic, "topic_id", ZERO_UUID) != ZERO_UUID:
                self._topic_ids.setdefault(name.removeprefix(self._prefix + "-"), topic.topic_id)

    def _create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        full = self._fill(f"${name}")
        settings = [CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        topic = CreatableTopic(name=full, num_partitions=partitions, replication_factor=1, configs=settings)
        response = self._connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
        assert response.topics[0].error_code == 0, response
        self._record_ids(response)
        # Metadata has a leader shortly before that leader is ready.
        requested = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=full, partitions=requested)])
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while any(partition.error_code for partition in self._connection.call(request, 7).topics[0].partitions):
            assert time.monotonic() < deadline, f"{full} has no leader yet"
            time.sleep(0.005)
        metadata = self._connection.call(MetadataRequest(topics=[MetadataRequestTopic(name=full)]), 12)
        self._node_id = metadata.brokers[0].node_id

    def _fill(self, value: Any) -> Any:
        """Return a copy with the placeholders replaced."""
        if isinstance(value, Message):
            filled = {field.name: self._fill(getattr(value, field.name)) for field in type(value).FIELDS}
            changed = any(item is not getattr(value, name) for name, item in filled.items())
            return type(value)(**filled) if changed else value
        if isinstance(value, list):
            return [self._fill(item) for item in value]
        if isinstance(value, Batch):
            return self._batch(value)
        if isinstance(value, str) and "$" in value:
            self._names[value.replace("$", self._prefix + "-")] = None
            return value.replace("$", self._prefix + "-")
        if isinstance(value, str) and value.startswith("@"):
            return self._members[value[1:]]
        if isinstance(value, bytes) and value.startswith(b"$id:"):
            return self._topic_ids[value[4:].rstrip(b"\0").decode()]
        if value == LAST_SESSION and isinstance(value, int):
            return self._session_id
        if value == NODE and isinstance(value, int):
            return self._node_id
        return value

    def _batch(self, batch: Batch) -> bytes:
        marks: dict[str, Any] = {}
        if batch.producer is not None:
            producer_id = self._producers[batch.producer]
            marks = {
                "producer_id": producer_id,
                "producer_epoch": batch.producer_epoch,
                "base_sequence": batch.sequence,
            }
        built = build_batch(
            batch.records,
            codec=batch.codec,
            is_control=batch.is_control,
            is_transactional=batch.is_transactional,
            **marks,
        )
        return bytes(batch.corrupt(built) if batch.corrupt else built)

    def _clean_up(self) -> None:
        """Delete what the case created, to keep a long-running broker empty."""
        try:
            if self._names:
                names = [name for name in self._names if len(name) < 250]
                self._connection.call(DeleteTopicsRequest(topic_names=names, timeout_ms=10_000), 5)
                if self._is_about_groups:
                    self._leave_groups(names)
                    self._connection.call(DeleteGroupsRequest(groups_names=names), 2)
        except (ConnectionClosed, ConnectionError):
            return  # the case broke the connection
        finally:
            self._connection.close()
            for other in self._others.values():
                other.close()

    def _leave_groups(self, names: list[str]) -> None:
        """Remove the members: otherwise their session timeouts would delay the deletion."""
        described = self._connection.call(DescribeGroupsRequest(groups=names), 5)
        for group in described.groups:
            if group.members:
                members = [MemberIdentity(member_id=member.member_id) for member in group.members]
                self._connection.call(LeaveGroupRequest(group_id=group.group_id, members=members), 5)
