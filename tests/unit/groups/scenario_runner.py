"""Runs a scenario against a coordinator, a shard in memory or a real broker, and makes a comparable transcript."""

import json
import re
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, Protocol

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.groups.interface import GroupCall, GroupRecord, GroupSettings
from ottla.groups.shard import GroupCoordinatorShard
from ottla.wire.messages.join_group import JoinGroupResponse
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.records.group import (
    GROUP_TYPE,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
    record_type,
)
from ottla.wire.schema import Message, decode, encode

TOPIC_IDS = {"t1": Uuid(b"1" * 16), "t2": Uuid(b"2" * 16)}
SETTINGS = GroupSettings(
    group_min_session_timeout_ms=500,
    group_max_size=3,
    group_initial_rebalance_delay_ms=0,
    offset_metadata_max_bytes=100,
)
"""Settings of the broker that recorded `tests/data/group_dialogues.json`."""

START_MS = 1_700_000_000_000
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class SeededRng:
    def __init__(self, seed: int = 1) -> None:
        self._random = Random(seed)

    def random_bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)


class Backend(Protocol):
    """A coordinator: a shard in tests, a broker's socket while recording."""

    def send(self, client: str, request: Message, version: int) -> None: ...

    def receive(self, client: str) -> Message: ...

    def wait(self, milliseconds: int) -> None: ...

    def topic_id(self, name: str) -> bytes: ...


class ScenarioRun:
    """One run of a scenario. The transcript has each response, with names in place of generated member ids."""

    def __init__(self, backend: Backend, prefix: str) -> None:
        self.backend = backend
        self.prefix = prefix
        self.transcript: list[str] = []
        self._names: dict[str, str] = {}
        self._open: dict[str, tuple[type[Message], int]] = {}

    def group(self, name: str) -> str:
        return self.prefix + name

    def send(self, client: str, request: Message, version: int) -> None:
        self._open[client] = (type(request), version)
        self.backend.send(client, request, version)

    def receive(self, client: str) -> Any:
        kind, version = self._open.pop(client)
        response = self.backend.receive(client)
        if isinstance(response, JoinGroupResponse) and UUID.search(response.member_id):
            self._names.setdefault(
                response.member_id,
                f"<{client}{sum(name.startswith('<' + client) for name in self._names.values()) or ''}>",
            )
        self.transcript.append(f"{client} {kind.__name__.removesuffix('Request')} v{version}: {self._text(response)}")
        return response

    def call(self, client: str, request: Message, version: int) -> Any:
        self.send(client, request, version)
        return self.receive(client)

    def wait(self, milliseconds: int) -> None:
        self.backend.wait(milliseconds)

    def records(self, log: Iterable[tuple[bytes, bytes | None]]) -> list[str]:
        """Return the records of this scenario's groups, by group, in the order of the log."""
        texts = [record_text(key, value) for key, value in log if self.prefix.encode() in key]
        return sorted([canonical_text(self._named(text)) for text in texts], key=lambda text: text.split(" ", 1)[0])

    def _text(self, response: Message) -> str:
        return canonical_text(self._named(json.dumps(plain(response))))

    def _named(self, text: str) -> str:
        for member_id, name in self._names.items():
            text = text.replace(member_id, name)
        return UUID.sub("<unknown>", text.replace(self.prefix, ""))


def record_text(key: bytes, value: bytes | None) -> str:
    """Return a record without its timestamps."""
    if record_type(key) == GROUP_TYPE:
        if value is None:
            return f"{read_group_key(key)} is deleted"
        metadata = read_group_value(value)
        metadata.current_state_timestamp = 0
        return f"{read_group_key(key)} v{value[1]} {json.dumps(plain(metadata))}"
    group, topic, partition = read_offset_key(key)
    if value is None:
        return f"{group} {topic}-{partition} is deleted"
    offset = read_offset_value(value)
    committed = f"{offset.offset} {offset.leader_epoch} {offset.metadata!r} {any(offset.topic_id)}"
    return f"{group} {topic}-{partition} v{value[1]} {committed}"


def plain(value: Any) -> Any:
    """Convert to JSON types. Error messages become booleans; empty values are omitted."""
    if isinstance(value, Message):
        shown = {field.name: getattr(value, field.name) for field in type(value).FIELDS}
        shown = {name: bool(item) if name == "error_message" else plain(item) for name, item in shown.items()}
        return {name: item for name, item in shown.items() if name != "topic_id" and item not in ("", [], 0, False)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else value


def canonical_text(text: str) -> str:
    """Return the text with the JSON object at its end in canonical order."""
    head, brace, body = text.partition("{")
    return head + json.dumps(with_sorted_lists(json.loads(brace + body)), sort_keys=True) if brace else text


def with_sorted_lists(value: Any) -> Any:
    """Sort all lists: their order in a response is unspecified."""
    if isinstance(value, dict):
        return {name: with_sorted_lists(item) for name, item in value.items()}
    if isinstance(value, list):
        return sorted([with_sorted_lists(item) for item in value], key=lambda item: json.dumps(item, sort_keys=True))
    return value


class ShardBackend:
    """Drives a shard as the runtime does, with a list as the log. Appends are committed immediately."""

    def __init__(self, settings: GroupSettings = SETTINGS, seed: int = 1) -> None:
        self.shard = GroupCoordinatorShard(settings, SeededRng(seed))
        self.now_ms = START_MS
        self.log: list[GroupRecord] = []
        self.responses: dict[str, Message] = {}
        self.reject_next: ErrorCode | None = None
        self._settings, self._seed = settings, seed
        self._versions: dict[str, int] = {}
        self._take(self.shard.on_loaded(self.now_ms), None)

    def reloaded(self) -> GroupCoordinatorShard:
        """Return a new shard with the log replayed."""
        self._seed += 1
        shard = GroupCoordinatorShard(self._settings, SeededRng(self._seed))
        for offset, record in enumerate(self.log):
            shard.replay(offset, record.key, record.value)
        return shard

    def restart(self) -> None:
        """Fail over: answer pending requests with an error and load a new shard from the log."""
        self._take(self.shard.on_unloaded(), None)
        self.shard = self.reloaded()
        self._take(self.shard.on_loaded(self.now_ms), None)

    def topic_id(self, name: str) -> bytes:
        return TOPIC_IDS[name]

    def send(self, client: str, request: Message, version: int) -> None:
        request = decode(type(request), version, encode(request, version))[0]
        for topic in topics_of(request):  # as the handlers do
            names = {topic_id: name for name, topic_id in TOPIC_IDS.items()}
            topic.name = topic.name or names[topic.topic_id]
            topic.topic_id = TOPIC_IDS[topic.name]
        self._versions[client] = version
        call = GroupCall(request, version, client_id="compat", client_host="/127.0.0.1", token=client)
        self._take(self.shard.decide(call, self.now_ms), client)
        self._run_timers()

    def receive(self, client: str) -> Message:
        response = self.responses.pop(client)
        version = self._versions[client]
        return decode(type(response), version, encode(response, version))[0]

    def wait(self, milliseconds: int) -> None:
        until = self.now_ms + milliseconds
        while (deadline := self.shard.next_deadline_ms()) is not None and deadline <= until:
            self.now_ms = max(self.now_ms, deadline)
            self._take(self.shard.on_deadline(self.now_ms), None)
        self.now_ms = until

    def _run_timers(self) -> None:
        while (deadline := self.shard.next_deadline_ms()) is not None and deadline <= self.now_ms:
            self._take(self.shard.on_deadline(self.now_ms), None)

    def _take(self, decision: Decision, client: str | None) -> None:
        """Apply a decision. If `reject_next` is set, the log rejects its records with that error."""
        if decision.records and self.reject_next is not None:
            error, self.reject_next = self.reject_next, None
            decision = self.shard.on_append_failed(decision, error, self.now_ms)
        for record in decision.records:
            self.shard.replay(len(self.log), record.key, record.value)
            self.log.append(record)
        for token, response in decision.completions:
            assert token not in self.responses, f"two responses for {token}"
            self.responses[token] = response
        if client is not None and not decision.waiting:
            assert decision.response is not None
            self.responses[client] = decision.response


def topics_of(request: Message) -> Iterator[Any]:
    if isinstance(request, OffsetCommitRequest):
        yield from request.topics
    elif isinstance(request, OffsetFetchRequest):
        for group in request.groups:
            yield from group.topics or ()
