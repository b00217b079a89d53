"""The shard driver: what is appended, when it is replayed, and when calls are answered."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import pytest

from ottla.base.decision import Decision
from ottla.base.errors import ErrorCode
from ottla.base.ids import Uuid
from ottla.log.config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.runtime.partition import InternalPartition
from ottla.runtime.shard_driver import IMMEDIATE_APPENDS_MAX, ShardContext, ShardDriver, ShardState, Token
from ottla.sim.world import World
from ottla.wire.batches import decode_records, iterate_batches

MAX_BYTES = 1000


class Call(NamedTuple):
    """Writes `values`; is answered with `response`, or waits; completes the calls in `completes`."""

    response: str = "done"
    values: tuple[bytes, ...] = ()
    waits: bool = False
    completes: tuple[Any, ...] = ()
    token: Any = None


class RecordingShard:
    """A shard that decides as its calls say, and records what it is called with."""

    def __init__(self) -> None:
        self.replayed: list[tuple[int, bytes, bytes | None]] = []
        self.failed: list[ErrorCode] = []
        self.deadline_ms: int | None = None
        self.times: list[int] = []
        self.waiting: list[Any] = []
        self.due = Decision()

    def decide(self, call: Call, now_ms: int) -> Decision:
        if call.waits:
            self.waiting.append(call.token)
        return Decision(
            tuple((b"key", value) for value in call.values),
            None if call.waits else call.response,
            call.waits,
            tuple((token, "completed") for token in call.completes),
        )

    def replay(self, offset: int, key: bytes, value: bytes | None) -> None:
        self.replayed.append((offset, key, value))

    def on_append_failed(self, decision: Decision, error: ErrorCode, now_ms: int) -> Decision:
        self.failed.append(error)
        return Decision(response=f"failed with {error.name}")

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms

    def on_deadline(self, now_ms: int) -> Decision:
        self.times.append(now_ms)
        self.deadline_ms = None
        return self.due

    def on_loaded(self, now_ms: int) -> Decision:
        return Decision()

    def on_unloaded(self) -> Decision:
        return Decision(completions=tuple((token, "unloaded") for token in self.waiting))


class LaggingPartition(InternalPartition):
    """A partition whose high watermark advances only when the test says so."""

    def append_coordinator_batch(self, batch: bytearray, count: int, now_ms: int) -> int:
        before = self.high_watermark
        end = super().append_coordinator_batch(batch, count, now_ms)
        self.high_watermark = before
        return end


class Fixture:
    """An active shard driver in a simulated world."""

    def __init__(self, world: World, partition_class: type[InternalPartition] = InternalPartition) -> None:
        self.loop = world.loop
        self.ports = world.start("node")
        self.diverged: list[ShardDriver] = []
        log = PartitionLog.open(
            self.ports.disk,
            "/data/__x-0",
            config=LogConfig(max_message_bytes=MAX_BYTES),
            topic_id=Uuid(b"i" * 16),
            now_ms=0,
            clean=True,
        )
        self.partition = partition_class("__x", log.topic_id, 0, 3, log)
        self.shard = RecordingShard()
        start = world.loop.time()
        context = ShardContext(
            loop=world.loop,
            now_ms=lambda: round((world.loop.time() - start) * 1000),
            error_response=lambda call, error: f"error: {error.name}",
            codec=0,
            on_state_diverged=self.on_state_diverged,
        )
        self.driver = ShardDriver(self.partition, self.shard, context)
        self.driver.activate()

    def on_state_diverged(self, driver: ShardDriver) -> None:
        self.diverged.append(driver)
        driver.close()

    def waiting(self, **fields: Any) -> Call:
        return Call(waits=True, token=Token(self.loop), **fields)

    def batches(self) -> list[list[bytes | None]]:
        """Return the values of each batch in the log."""
        found = self.partition.log.read(
            0, 1 << 20, limit_offset=self.partition.log.log_end_offset, min_one_message=True
        )
        if found is None:
            return []
        data = found.file.read_at(found.position, found.size)
        return [
            [record.value for record in decode_records(data[at : at + header.size])]
            for at, header in iterate_batches(data)
        ]


@pytest.fixture
def play() -> Callable[..., None]:
    def play(
        scenario: Callable[[Fixture], Coroutine[Any, Any, None]],
        partition_class: type[InternalPartition] = InternalPartition,
    ) -> None:
        with World(1, cold_reads=0.0) as world:

            async def run() -> None:
                await scenario(Fixture(world, partition_class))

            world.run(run())

    return play


def test_single_call_is_appended_replayed_and_answered_at_once(play):
    async def scenario(fixture: Fixture) -> None:
        assert fixture.driver.submit(Call("first", (b"1", b"2"))) == "first"
        assert fixture.driver.submit(Call("second", (b"3",))) == "second"
        assert fixture.driver.submit(Call("nothing to write")) == "nothing to write"
        assert fixture.shard.replayed == [(0, b"key", b"1"), (1, b"key", b"2"), (2, b"key", b"3")]
        assert fixture.batches() == [[b"1", b"2"], [b"3"]]

    play(scenario)


def test_responses_wait_for_the_high_watermark_even_without_records(play):
    async def scenario(fixture: Fixture) -> None:
        written = fixture.driver.submit(Call("written", (b"1",)))
        read = fixture.driver.submit(Call("read"))
        later = fixture.driver.submit(Call("later", (b"2",)))
        assert [written.done(), read.done(), later.done()] == [False, False, False]
        assert len(fixture.shard.replayed) == 2  # replayed before it is committed, for the next decision
        fixture.partition.advance_high_watermark(1)
        assert (written.result(), read.result(), later.done()) == ("written", "read", False)
        fixture.partition.advance_high_watermark(2)
        assert later.result() == "later"
        assert fixture.driver.submit(Call("all is committed")) == "all is committed"

    play(scenario, LaggingPartition)


def test_waiting_call_is_completed_by_another_call(play):
    async def scenario(fixture: Fixture) -> None:
        call = fixture.waiting()
        waiting = fixture.driver.submit(call)
        assert not waiting.done()
        assert fixture.driver.submit(Call("last", (b"1",), completes=(call.token,))) == "last"
        assert waiting.result() == "completed"

    play(scenario)


def test_completion_of_a_waiting_call_waits_for_the_commit(play):
    async def scenario(fixture: Fixture) -> None:
        call = fixture.waiting()
        waiting = fixture.driver.submit(call)
        last = fixture.driver.submit(Call("last", (b"1",), completes=(call.token,)))
        assert (waiting.done(), last.done()) == (False, False)
        fixture.partition.advance_high_watermark(1)
        assert (waiting.result(), last.result()) == ("completed", "last")

    play(scenario, LaggingPartition)


def test_calls_of_one_iteration_share_a_batch(play):
    """One call in 64 is delayed; while other calls share its batch, all are delayed to the end of the iteration."""

    async def scenario(fixture: Fixture) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            assert fixture.driver.submit(Call("alone", (b"x",))) == "alone"
        for _ in range(2):
            together = [fixture.driver.submit(Call(name, (name.encode(),))) for name in "abc"]
            read = fixture.driver.submit(Call("read"))
            assert not any(response.done() for response in (*together, read))
            assert await asyncio.gather(*together, read) == ["a", "b", "c", "read"]
        assert fixture.batches()[IMMEDIATE_APPENDS_MAX:] == [[b"a", b"b", b"c"]] * 2
        assert [offset for offset, _, _ in fixture.shard.replayed] == list(range(IMMEDIATE_APPENDS_MAX + 6))
        assert await fixture.driver.submit(Call("nobody else", (b"y",))) == "nobody else"
        assert fixture.driver.submit(Call("alone again", (b"z",))) == "alone again"

    play(scenario)


def test_shared_batch_is_limited_to_the_maximum_batch_size(play):
    async def scenario(fixture: Fixture) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            fixture.driver.submit(Call(values=(b"",)))
        responses = [fixture.driver.submit(Call(f"{at}", (b"%d" % at * 300,))) for at in range(5)]
        found = [await response if asyncio.isfuture(response) else response for response in responses]
        assert found == ["0", "1", "2", "3", "4"]
        assert [len(batch) for batch in fixture.batches()[IMMEDIATE_APPENDS_MAX:]] in (
            [2, 1, 2],
            [2, 1, 1, 1],
            [2, 2, 1],
        )
        assert [value for batch in fixture.batches()[IMMEDIATE_APPENDS_MAX:] for value in batch] == [
            b"%d" % at * 300 for at in range(5)
        ]

    play(scenario)


def test_too_large_records_are_rejected_and_not_replayed(play):
    async def scenario(fixture: Fixture) -> None:
        assert fixture.driver.submit(Call("large", (b"x" * 2000,))) == "failed with MESSAGE_TOO_LARGE"
        assert (fixture.shard.replayed, fixture.batches()) == ([], [])
        assert fixture.driver.submit(Call("small", (b"x",))) == "small"

    play(scenario)


def test_failed_append_fails_only_its_call(play):
    async def scenario(fixture: Fixture) -> None:
        fixture.ports.disk.fail("append", 1, errno.ENOSPC)
        assert fixture.driver.submit(Call("full", (b"x",))) == "failed with KAFKA_STORAGE_ERROR"
        assert fixture.shard.failed == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert fixture.driver.submit(Call("room", (b"y",))) == "room"
        assert fixture.batches() == [[b"y"]]

    play(scenario)


def test_shard_is_closed_when_a_shared_batch_cannot_be_appended(play):
    """Its records are already replayed, so the state is ahead of the log."""

    async def scenario(fixture: Fixture) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            fixture.driver.submit(Call(values=(b"x",)))
        call = fixture.waiting()
        waiting = fixture.driver.submit(call)
        fixture.ports.disk.fail("append", 1, errno.EIO)
        responses = [fixture.driver.submit(Call(values=(b"a",))), fixture.driver.submit(Call(values=(b"b",)))]
        assert await asyncio.gather(*responses, waiting) == ["error: NOT_COORDINATOR"] * 2 + ["unloaded"]
        assert fixture.diverged == [fixture.driver]
        assert fixture.driver.state == ShardState.CLOSED
        assert fixture.driver.submit(Call(values=(b"x",))) == "error: NOT_COORDINATOR"

    play(scenario)


def test_completions_of_a_decision_fail_when_the_shard_is_closed(play):
    """The decision's records do not fit in the current batch, and appending that batch fails."""

    async def scenario(fixture: Fixture) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            fixture.driver.submit(Call(values=(b"x",)))
        call = fixture.waiting()
        waiting = fixture.driver.submit(call)
        fixture.shard.waiting.clear()  # the decision completes it
        fixture.ports.disk.fail("append", 1, errno.EIO)
        first = fixture.driver.submit(Call(values=(b"a" * 600,)))
        assert fixture.driver.submit(Call(values=(b"b" * 600,), completes=(call.token,))) == "error: NOT_COORDINATOR"
        assert (first.result(), waiting.result()) == ("error: NOT_COORDINATOR", "error: NOT_COORDINATOR")

    play(scenario)


@pytest.mark.parametrize("count", [1, 5])
def test_decision_without_a_call_stops_when_the_shard_is_closed(play, count):
    """None of its records are written: the partition already has another shard."""

    async def scenario(fixture: Fixture) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            fixture.driver.submit(Call(values=(b"x",)))
        call = fixture.waiting()
        waiting = fixture.driver.submit(call)
        fixture.shard.waiting.clear()
        fixture.ports.disk.fail("append", 1, errno.EIO)
        first = fixture.driver.submit(Call(values=(b"a" * 600,)))
        fixture.driver.execute(
            lambda shard, now_ms: Decision(((b"key", b"b" * 600),) * count, completions=((call.token, "at last"),))
        )
        assert (first.result(), waiting.result()) == ("error: NOT_COORDINATOR", "error: NOT_COORDINATOR")
        await asyncio.sleep(1)
        assert fixture.batches() == [[b"x"]] * IMMEDIATE_APPENDS_MAX

    play(scenario)


def test_closed_shard_answers_all_pending_calls(play):
    async def scenario(fixture: Fixture) -> None:
        call, completed = fixture.waiting(), fixture.waiting()
        waiting, ending = fixture.driver.submit(call), fixture.driver.submit(completed)
        fixture.shard.waiting.remove(completed.token)
        written = fixture.driver.submit(Call("written", (b"1",), completes=(completed.token,)))
        fixture.driver.close()
        assert (waiting.result(), written.result(), ending.result()) == (
            "unloaded",
            "error: NOT_COORDINATOR",
            "error: NOT_COORDINATOR",
        )
        fixture.partition.advance_high_watermark(1)  # has no effect on the closed shard

    play(scenario, LaggingPartition)


def test_loading_and_failed_shards_answer_with_errors(play):
    async def scenario(fixture: Fixture) -> None:
        fixture.driver.state = ShardState.LOADING
        assert fixture.driver.submit(Call()) == "error: COORDINATOR_LOAD_IN_PROGRESS"
        fixture.driver.fail()
        assert fixture.driver.submit(Call()) == "error: NOT_COORDINATOR"

    play(scenario)


def test_timer_fires_at_the_earliest_deadline(play):
    async def scenario(fixture: Fixture) -> None:
        fixture.shard.deadline_ms = 5000
        fixture.driver.submit(Call())
        fixture.shard.deadline_ms = 3000
        fixture.driver.submit(Call())
        await asyncio.sleep(4)
        assert fixture.shard.times == [3000]
        fixture.shard.deadline_ms = 6000
        fixture.driver.submit(Call())
        fixture.shard.deadline_ms = 9000  # as after a heartbeat: the timer fires early and is set again
        await asyncio.sleep(3)
        assert fixture.shard.times == [3000]
        await asyncio.sleep(3)
        assert fixture.shard.times == [3000, 9000]

    play(scenario)


def test_decision_without_a_call_is_split_into_batches(play):
    async def scenario(fixture: Fixture) -> None:
        call = fixture.waiting()
        waiting = fixture.driver.submit(call)
        records = tuple((b"key", b"%d" % at * 100) for at in range(10, 30))
        fixture.shard.deadline_ms, fixture.shard.due = 10, Decision(records, completions=((call.token, "at last"),))
        fixture.driver.submit(Call())
        await asyncio.sleep(1)
        assert waiting.result() == "at last"
        assert [value for batch in fixture.batches() for value in batch] == [value for _, value in records]
        assert len(fixture.batches()) > 4

    play(scenario)
