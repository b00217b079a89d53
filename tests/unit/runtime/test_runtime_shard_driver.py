"""A shard between its machine and its log: what is appended, when it is replayed, and who is answered when."""

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
    """Writes `values`, if any; is answered with `answer`, waits, or ends the waits of others."""

    answer: str = "done"
    values: tuple[bytes, ...] = ()
    waits: bool = False
    completes: tuple[Any, ...] = ()
    token: Any = None


class BookMachine:
    """Decides what its calls say, and keeps book of all that happens to it."""

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
            None if call.waits else call.answer,
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
    """Its followers have nothing until it is said that they do."""

    def append_coordinator_batch(self, batch: bytearray, count: int, now_ms: int) -> int:
        before = self.high_watermark
        end = super().append_coordinator_batch(batch, count, now_ms)
        self.high_watermark = before
        return end


class Bench:
    """A shard in a simulated world, active, with a book for a machine."""

    def __init__(self, world: World, kind: type[InternalPartition] = InternalPartition) -> None:
        self.loop = world.loop
        self.ports = world.start("node")
        self.lost: list[ShardDriver] = []
        log = PartitionLog.open(
            self.ports.disk,
            "/data/__x-0",
            config=LogConfig(max_message_bytes=MAX_BYTES),
            topic_id=Uuid(b"i" * 16),
            now_ms=0,
            clean=True,
        )
        self.partition = kind("__x", log.topic_id, 0, 3, log)
        self.machine = BookMachine()
        start = world.loop.time()
        around = ShardContext(
            loop=world.loop,
            now_ms=lambda: round((world.loop.time() - start) * 1000),
            refusal=lambda call, error: f"refused: {error.name}",
            codec=0,
            on_state_diverged=self.on_state_diverged,
        )
        self.shard = ShardDriver(self.partition, self.machine, around)
        self.shard.activate()

    def on_state_diverged(self, shard: ShardDriver) -> None:
        self.lost.append(shard)
        shard.close()

    def waiting(self, **fields: Any) -> Call:
        return Call(waits=True, token=Token(self.loop), **fields)

    def batches(self) -> list[list[bytes | None]]:
        """The values of each batch in the log."""
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
        act: Callable[[Bench], Coroutine[Any, Any, None]], kind: type[InternalPartition] = InternalPartition
    ) -> None:
        with World(1, cold_reads=0.0) as world:

            async def tell() -> None:
                await act(Bench(world, kind))

            world.run(tell())

    return play


def test_one_call_is_appended_replayed_and_answered_at_once(play):
    async def act(bench: Bench) -> None:
        assert bench.shard.submit(Call("first", (b"1", b"2"))) == "first"
        assert bench.shard.submit(Call("second", (b"3",))) == "second"
        assert bench.shard.submit(Call("nothing to write")) == "nothing to write"
        assert bench.machine.replayed == [(0, b"key", b"1"), (1, b"key", b"2"), (2, b"key", b"3")]
        assert bench.batches() == [[b"1", b"2"], [b"3"]]

    play(act)


def test_answers_wait_for_the_high_watermark_and_so_do_reads(play):
    async def act(bench: Bench) -> None:
        written = bench.shard.submit(Call("written", (b"1",)))
        read = bench.shard.submit(Call("read"))
        later = bench.shard.submit(Call("later", (b"2",)))
        assert [written.done(), read.done(), later.done()] == [False, False, False]
        assert len(bench.machine.replayed) == 2  # the next decision counts with it, though nobody may be told
        bench.partition.advance_high_watermark(1)
        assert (written.result(), read.result(), later.done()) == ("written", "read", False)
        bench.partition.advance_high_watermark(2)
        assert later.result() == "later"
        assert bench.shard.submit(Call("all is committed")) == "all is committed"

    play(act, LaggingPartition)


def test_one_who_waits_is_answered_by_another_call(play):
    async def act(bench: Bench) -> None:
        call = bench.waiting()
        waiting = bench.shard.submit(call)
        assert not waiting.done()
        assert bench.shard.submit(Call("last", (b"1",), completes=(call.token,))) == "last"
        assert waiting.result() == "completed"

    play(act)


def test_who_waits_is_not_told_of_what_is_not_committed(play):
    async def act(bench: Bench) -> None:
        call = bench.waiting()
        waiting = bench.shard.submit(call)
        last = bench.shard.submit(Call("last", (b"1",), completes=(call.token,)))
        assert (waiting.done(), last.done()) == (False, False)
        bench.partition.advance_high_watermark(1)
        assert (waiting.result(), last.result()) == ("completed", "last")

    play(act, LaggingPartition)


def test_calls_of_one_turn_share_a_batch(play):
    """After a while it is looked whether others write at the same time; as long as they do, all wait for the turn's end."""

    async def act(bench: Bench) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            assert bench.shard.submit(Call("alone", (b"x",))) == "alone"
        for _ in range(2):
            together = [bench.shard.submit(Call(name, (name.encode(),))) for name in "abc"]
            read = bench.shard.submit(Call("read"))
            assert not any(answer.done() for answer in (*together, read))
            assert await asyncio.gather(*together, read) == ["a", "b", "c", "read"]
        assert bench.batches()[IMMEDIATE_APPENDS_MAX:] == [[b"a", b"b", b"c"]] * 2
        assert [offset for offset, _, _ in bench.machine.replayed] == list(range(IMMEDIATE_APPENDS_MAX + 6))
        assert await bench.shard.submit(Call("nobody else", (b"y",))) == "nobody else"
        assert bench.shard.submit(Call("alone again", (b"z",))) == "alone again"

    play(act)


def test_a_round_holds_no_more_than_a_batch(play):
    async def act(bench: Bench) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            bench.shard.submit(Call(values=(b"",)))
        answers = [bench.shard.submit(Call(f"{at}", (b"%d" % at * 300,))) for at in range(5)]
        found = [await answer if asyncio.isfuture(answer) else answer for answer in answers]
        assert found == ["0", "1", "2", "3", "4"]
        assert [len(batch) for batch in bench.batches()[IMMEDIATE_APPENDS_MAX:]] in ([2, 1, 2], [2, 1, 1, 1], [2, 2, 1])
        assert [value for batch in bench.batches()[IMMEDIATE_APPENDS_MAX:] for value in batch] == [
            b"%d" % at * 300 for at in range(5)
        ]

    play(act)


def test_records_that_are_too_large_are_refused_and_not_replayed(play):
    async def act(bench: Bench) -> None:
        assert bench.shard.submit(Call("large", (b"x" * 2000,))) == "failed with MESSAGE_TOO_LARGE"
        assert (bench.machine.replayed, bench.batches()) == ([], [])
        assert bench.shard.submit(Call("small", (b"x",))) == "small"

    play(act)


def test_a_disk_that_fails_refuses_one_call(play):
    async def act(bench: Bench) -> None:
        bench.ports.disk.fail("append", 1, errno.ENOSPC)
        assert bench.shard.submit(Call("full", (b"x",))) == "failed with KAFKA_STORAGE_ERROR"
        assert bench.machine.failed == [ErrorCode.KAFKA_STORAGE_ERROR]
        assert bench.shard.submit(Call("room", (b"y",))) == "room"
        assert bench.batches() == [[b"y"]]

    play(act)


def test_a_round_that_is_lost_takes_the_shard_with_it(play):
    """Its records were replayed: the machine knows what the log does not."""

    async def act(bench: Bench) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            bench.shard.submit(Call(values=(b"x",)))
        call = bench.waiting()
        waiting = bench.shard.submit(call)
        bench.ports.disk.fail("append", 1, errno.EIO)
        answers = [bench.shard.submit(Call(values=(b"a",))), bench.shard.submit(Call(values=(b"b",)))]
        assert await asyncio.gather(*answers, waiting) == ["refused: NOT_COORDINATOR"] * 2 + ["unloaded"]
        assert bench.lost == [bench.shard]
        assert bench.shard.state == ShardState.CLOSED
        assert bench.shard.submit(Call(values=(b"x",))) == "refused: NOT_COORDINATOR"

    play(act)


def test_whom_a_decision_was_to_answer_hears_of_it_when_the_shard_is_lost(play):
    """The decision's records have no room in the round before them, which cannot be appended."""

    async def act(bench: Bench) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            bench.shard.submit(Call(values=(b"x",)))
        call = bench.waiting()
        waiting = bench.shard.submit(call)
        bench.machine.waiting.clear()  # it was decided what to answer
        bench.ports.disk.fail("append", 1, errno.EIO)
        first = bench.shard.submit(Call(values=(b"a" * 600,)))
        assert bench.shard.submit(Call(values=(b"b" * 600,), completes=(call.token,))) == "refused: NOT_COORDINATOR"
        assert (first.result(), waiting.result()) == ("refused: NOT_COORDINATOR", "refused: NOT_COORDINATOR")

    play(act)


@pytest.mark.parametrize("count", [1, 5])
def test_what_time_decides_ends_with_a_shard_that_is_lost(play, count):
    """Nothing of it is written any more: the partition is another shard's already."""

    async def act(bench: Bench) -> None:
        for _ in range(IMMEDIATE_APPENDS_MAX):
            bench.shard.submit(Call(values=(b"x",)))
        call = bench.waiting()
        waiting = bench.shard.submit(call)
        bench.machine.waiting.clear()
        bench.ports.disk.fail("append", 1, errno.EIO)
        first = bench.shard.submit(Call(values=(b"a" * 600,)))
        bench.shard.execute(
            lambda machine, now_ms: Decision(((b"key", b"b" * 600),) * count, completions=((call.token, "at last"),))
        )
        assert (first.result(), waiting.result()) == ("refused: NOT_COORDINATOR", "refused: NOT_COORDINATOR")
        await asyncio.sleep(1)
        assert bench.batches() == [[b"x"]] * IMMEDIATE_APPENDS_MAX

    play(act)


def test_a_shard_that_is_closed_answers_everybody(play):
    async def act(bench: Bench) -> None:
        call, completed = bench.waiting(), bench.waiting()
        waiting, ending = bench.shard.submit(call), bench.shard.submit(completed)
        bench.machine.waiting.remove(completed.token)
        written = bench.shard.submit(Call("written", (b"1",), completes=(completed.token,)))
        bench.shard.close()
        assert (waiting.result(), written.result(), ending.result()) == (
            "unloaded",
            "refused: NOT_COORDINATOR",
            "refused: NOT_COORDINATOR",
        )
        bench.partition.advance_high_watermark(1)  # which is no concern of it any more

    play(act, LaggingPartition)


def test_while_it_is_loaded_and_after_it_failed(play):
    async def act(bench: Bench) -> None:
        bench.shard.state = ShardState.LOADING
        assert bench.shard.submit(Call()) == "refused: COORDINATOR_LOAD_IN_PROGRESS"
        bench.shard.fail()
        assert bench.shard.submit(Call()) == "refused: NOT_COORDINATOR"

    play(act)


def test_time_comes_at_the_earliest_deadline(play):
    async def act(bench: Bench) -> None:
        bench.machine.deadline_ms = 5000
        bench.shard.submit(Call())
        bench.machine.deadline_ms = 3000
        bench.shard.submit(Call())
        await asyncio.sleep(4)
        assert bench.machine.times == [3000]
        bench.machine.deadline_ms = 6000
        bench.shard.submit(Call())
        bench.machine.deadline_ms = 9000  # a heartbeat came: the timer fires, and finds nothing to do
        await asyncio.sleep(3)
        assert bench.machine.times == [3000]
        await asyncio.sleep(3)
        assert bench.machine.times == [3000, 9000]

    play(act)


def test_what_time_decides_may_be_more_than_a_batch_holds(play):
    async def act(bench: Bench) -> None:
        call = bench.waiting()
        waiting = bench.shard.submit(call)
        records = tuple((b"key", b"%d" % at * 100) for at in range(10, 30))
        bench.machine.deadline_ms, bench.machine.due = 10, Decision(records, completions=((call.token, "at last"),))
        bench.shard.submit(Call())
        await asyncio.sleep(1)
        assert waiting.result() == "at last"
        assert [value for batch in bench.batches() for value in batch] == [value for _, value in records]
        assert len(bench.batches()) > 4

    play(act)
