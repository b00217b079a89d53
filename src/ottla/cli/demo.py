"""`ottla demo`: a broker, traffic, and a group of consumers of which one is killed, watched while it happens.

Nothing is staged: the broker is a whole one on a free port, the consumers are processes, the one that dies gets SIGKILL, and everything
shown is asked of the broker with `ottla.client`.
"""

import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from types import FrameType
from typing import Annotated

import typer

from ottla import __version__
from ottla.cli.command import command
from ottla.cli.demo_clients import SESSION_TIMEOUT_MS, Traffic, Worker
from ottla.cli.demo_view import Chronicle, LiveView, Moment, PlainView, View, look

DEFAULT_SECONDS = 30.0
TOPIC, GROUP = "orders", "warehouse"
PARTITIONS = 6
NAMES = ("ada", "bob", "cleo")
ORDERS_PER_SECOND = 600
KILL_AT, REPLACE_AT = 0.3, 0.65
"""When, as parts of the whole, somebody dies and somebody new comes."""
CYCLE_SECONDS = 30.0
"""How long a whole is where no end was set."""
LOOK_SECONDS = 0.25
RATE_SECONDS = 2.0
"""Rates are averages over the last so many seconds."""
CATCH_UP_SECONDS_MAX = 10.0
BROKER = {
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "offsets.topic.num.partitions": "1",
}
NEXT = """\
Try next:
  ottla start --ephemeral        a broker of your own at 127.0.0.1:9092, for any Kafka client
  ottla --help                   all the words: topics, producing, consuming, groups and their lag
  docs/quick-start.md            the same by hand in five minutes: a group, a kill, a test\
"""


def register(root: typer.Typer) -> None:
    command(root, "demo")(demo)


class Story(StrEnum):
    GROUP = "group"
    PIPELINE = "pipeline"


def demo(
    story: Annotated[
        Story, typer.Argument(help="group: consumers of which one is killed; pipeline: Spark adds up orders.")
    ] = Story.GROUP,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0, help="How long; 0 goes on until Ctrl-C.")
    ] = DEFAULT_SECONDS,
    plain: Annotated[
        bool, typer.Option("--plain", help="Lines of text instead of a picture, as where there is no terminal.")
    ] = False,
) -> None:
    """Watch a broker, traffic, and a group of consumers of which one is killed, or a pipeline on Spark. Nothing is left behind."""
    if story is Story.PIPELINE:
        from ottla.cli.demo_pipeline import pipeline

        with _interruption() as is_over:
            pipeline(seconds, is_plain=plain, is_over=is_over)
        return
    with ExitStack() as stack:
        is_over = stack.enter_context(_interruption())
        show = Show(stack, PlainView() if plain or not sys.stdout.isatty() else LiveView())
        show.run(seconds, is_over)
        show.end(is_interrupted=is_over.is_set())
    print(show.summary(), NEXT, sep="\n", flush=True)


@contextmanager
def _interruption() -> Iterator[threading.Event]:
    """Set by the first Ctrl-C or SIGTERM; a second one is as rude as ever."""
    asked = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Show:
    """One performance; all that it starts is ended by the stack."""

    def __init__(self, stack: ExitStack, view: View) -> None:
        from ottla.client import Admin
        from ottla.testing import Broker

        broker = stack.enter_context(Broker(config=BROKER))
        broker.create_topic(TOPIC, PARTITIONS)
        self._bootstrap = broker.bootstrap
        self._admin = stack.enter_context(Admin(bootstrap_servers=broker.bootstrap))
        self._workers: list[Worker] = []
        stack.callback(self._end_workers)
        self._traffic = Traffic(broker.bootstrap, TOPIC, ORDERS_PER_SECOND)
        stack.callback(self._traffic.stop)
        self._chronicle = Chronicle()
        self._moments: deque[Moment] = deque()
        self._now_s = 0.0
        self._killed_at_s: float | None = None
        self._taken_over_after_s: float | None = None
        view.title = f"Ottla {__version__} at {broker.bootstrap}"
        self._view = stack.enter_context(view)

    def run(self, seconds: float, is_over: threading.Event) -> None:
        for name in NAMES:
            self._start_worker(name)
        self._traffic.start()
        self._view.tell(
            0, f"{len(NAMES)} consumers start, and {ORDERS_PER_SECOND} orders a second go into {PARTITIONS} partitions"
        )
        turns = _turns(seconds)
        began_s = time.monotonic()
        due_s, turn = next(turns)
        while not is_over.wait(LOOK_SECONDS):
            self._now_s = time.monotonic() - began_s
            if seconds and self._now_s >= seconds:
                return
            self._look()
            if self._now_s >= due_s and self._chronicle.members:  # who is to be missed must have been there
                if turn == "kill":
                    self._kill_one()
                else:
                    self._start_worker(_next_name(self._workers))
                due_s, turn = next(turns)

    def end(self, *, is_interrupted: bool) -> None:
        """Stop the traffic and, if there is time, let the group catch up."""
        self._traffic.stop()
        if not is_interrupted:
            self._view.tell(self._now_s, "no more orders")
            pause = threading.Event()
            for _ in range(int(CATCH_UP_SECONDS_MAX / LOOK_SECONDS)):
                self._now_s += LOOK_SECONDS
                self._look()
                if self._moments[-1].lag == 0 and self._moments[-1].state == "Stable":
                    break
                pause.wait(LOOK_SECONDS)
        self._end_workers()
        self._look(is_shown=False)

    def summary(self) -> str:
        last = self._moments[-1]
        killed = sum(worker.is_killed for worker in self._workers)
        lines = [
            f"\n{last.produced:,} orders were produced and {last.handled:,} handled, each at least once; {last.lag:,} are left."
        ]
        if killed:
            died = "One consumer was killed" if killed == 1 else f"{killed} consumers were killed"
            lines.append(f"{died}; partitions changed hands {self._chronicle.moved} times.")
        if self._taken_over_after_s is not None:
            lines.append(f"The last one's work went on elsewhere after {self._taken_over_after_s:.1f} s.")
        return "\n".join(lines)

    def _look(self, *, is_shown: bool = True) -> None:
        moment = look(self._admin, TOPIC, GROUP, PARTITIONS, self._now_s)
        self._moments.append(moment)
        while self._moments[0].at_s < moment.at_s - RATE_SECONDS:
            self._moments.popleft()
        for sentence in self._chronicle.follow(moment):
            self._view.tell(moment.at_s, sentence)
            if "is no longer" in sentence and self._killed_at_s is not None:
                self._taken_over_after_s, self._killed_at_s = moment.at_s - self._killed_at_s, None
        if not is_shown:  # the last word is for the summary; the picture stays as it was while all were there
            return
        first = self._moments[0]
        passed_s = max(LOOK_SECONDS, moment.at_s - first.at_s)
        self._view.show(
            moment, (moment.produced - first.produced) / passed_s, (moment.handled - first.handled) / passed_s
        )

    def _start_worker(self, name: str) -> None:
        if len(self._workers) >= len(NAMES):
            self._view.tell(self._now_s, f"a new consumer starts: {name}")
        self._workers.append(Worker.start(name, self._bootstrap, TOPIC, GROUP))

    def _kill_one(self) -> None:
        victim = next((worker for worker in reversed(self._workers) if not worker.is_killed), None)
        if victim is not None:
            victim.kill()
            self._killed_at_s = self._now_s
            self._view.tell(self._now_s, f"kill -9 {victim.pid}: {victim.name} dies without a word")

    def _end_workers(self) -> None:
        living = [worker for worker in self._workers if worker.process.poll() is None]
        for worker in living:
            worker.ask_to_leave()
        for worker in living:
            worker.wait()


def _turns(seconds: float) -> Iterator[tuple[float, str]]:
    """When somebody dies and when somebody comes: once where there is an end, again and again where there is none."""
    whole, began = seconds or CYCLE_SECONDS, 0.0
    while True:
        yield began + whole * KILL_AT, "kill"
        yield began + whole * REPLACE_AT, "replace"
        began += whole


def _next_name(workers: list[Worker]) -> str:
    names = ("dan", "eve", "fay", "gus", "hal", "ivy")
    number = len(workers) - len(NAMES)
    return names[number % len(names)] + ("" if number < len(names) else str(number // len(names) + 1))
