"""The state machine of a connection: its table, and connections that follow it under random sequences of events."""

import random
from struct import pack

import pytest

from ottla.server import connection as connection_module
from ottla.server.connection import ServerConnection
from ottla.server.connection_state import TRANSITIONS, Event, InvalidTransition, State
from ottla.wire.framing import ReceiveBufferPool

END_STATES = (State.CLOSING, State.CLOSED)
REQUEST_KEY = 0


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_transitions_reject_pairs_that_are_not_listed(state: State, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert TRANSITIONS[state, event] in State
    else:
        with pytest.raises(InvalidTransition, match=f"{event.name} in state {state.name}"):
            TRANSITIONS[state, event]


def reachable(start: State) -> set[State]:
    found = [start]
    for state in found:
        found += [after for (before, _), after in TRANSITIONS.items() if before is state and after not in found]
    return set(found)


def test_every_state_is_reachable() -> None:
    assert reachable(State.MUTED) == set(State)


@pytest.mark.parametrize("state", State)
def test_only_open_states_lead_back_to_ready(state: State) -> None:
    assert (State.READY in reachable(state)) == state.is_open
    assert State.CLOSED in reachable(state)


def test_only_ready_handles_requests() -> None:
    assert [state for state in State if state.handles_requests] == [State.READY]
    assert [state for state in State if not state.is_open] == list(END_STATES)


class Network:
    """The network's side of a connection, whose socket may become full."""

    peer_host, peer_port = "client", 1

    def __init__(self) -> None:
        self.received: list[int] = []
        self.receiver: ServerConnection
        self.is_reading = True
        self.is_full = False
        self.fills = False
        self.is_closed = False
        self.sent_bytes = 0

    def write(self, parts, *, more=False):
        assert not self.is_closed
        self.received += [number for part in parts for number in part]
        if self.fills and not self.is_full:
            self.is_full, self.fills = True, False
            self.receiver.pause_writing()

    def drain(self):
        if self.is_full:
            self.is_full = False
            self.receiver.resume_writing()

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True

    def close(self):
        self.is_closed = True

    abort = close


class Scheduler:
    """Every burst has used up its slice."""

    sender = None
    has_other_senders = has_served_client = False

    def __init__(self):
        self.waiting = []

    def begin_burst(self):
        pass

    def is_burst_over(self):
        return True

    def schedule_burst(self, connection, resume):
        self.waiting.append(resume)


class Clock:
    now = 0.0

    def monotonic(self):
        self.now += 1.0
        return self.now


class Api:
    """A handler that responds at once or later, as the request's second byte says."""

    requests = errors = min_version = max_version = 0
    flexible_from = 1 << 15
    is_loaded = True

    def __init__(self):
        self.deferred = []
        self.handled = []

    def handle_raw(self, connection, buffer, view, position, end, version, correlation_id):
        assert connection._state is State.READY
        number, is_deferred = buffer[position], buffer[position + 1]
        self.handled.append(number)
        if is_deferred:
            self.deferred.append(bytes((number,)))
            return connection.defer()
        return connection.send_small(bytes((number,)))


class Server:
    """The part of Server that a ServerConnection uses."""

    frame_max = 1 << 20
    fetch_sessions = None

    def __init__(self, budget_bytes):
        self.api = Api()
        self.apis = {REQUEST_KEY: self.api}
        self.buffers = ReceiveBufferPool(budget_bytes)
        self.scheduler = Scheduler()
        self.clock = Clock()
        self.broker = self
        self.lost = 0

    def on_connected(self, connection):
        """Admitted later."""

    def on_disconnected(self, connection, sent_bytes):
        self.lost += 1


class WatchedTransitions(dict):
    """The transition table, which remembers the transitions that were made."""

    def __init__(self):
        super().__init__(TRANSITIONS)
        self.used = set()

    def __getitem__(self, key):
        self.used.add(key)
        return TRANSITIONS[key]


def request(number: int, source: random.Random) -> bytes:
    padding = source.choice((0, 0, 0, 1500, 70_000))
    body = pack(">hhih", REQUEST_KEY, 0, number, -1) + bytes((number, source.random() < 0.2)) + bytes(padding)
    return pack(">i", len(body)) + body


class Bench:
    """One connection, with random calls by the network, the server, handlers and the scheduler."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.server = Server(source.choice((0, 100_000, 100_000)))
        self.network = Network()
        self.connection = self.network.receiver = ServerConnection(self.server, "L")
        self.connection.connection_made(self.network)
        self.is_muted = True
        self.is_lost = False
        self.reserved = False
        self.count = source.randint(1, 40)
        self.unsent = b"".join(request(number, source) for number in range(self.count))

    def receive(self) -> None:
        """Deliver bytes as a loop does: not while reading is paused."""
        if self.unsent and self.network.is_reading and not self.is_lost:
            self.network.fills = self.source.random() < 0.3
            for _ in range(self.source.randint(1, 4)):
                buffer = self.connection.get_buffer(-1)
                assert len(buffer)
                size = min(len(buffer), len(self.unsent), self.source.choice((1, 20, 500, 100_000)))
                buffer[:size] = self.unsent[:size]
                self.unsent = self.unsent[size:]
                self.connection.buffer_updated(size)
                if not self.unsent or (not self.network.is_reading and self.source.random() < 0.8):
                    break  # now and then a little more arrives before the socket is paused

    def complete(self) -> None:
        if self.server.api.deferred:
            self.network.fills = self.source.random() < 0.3
            if self.source.random() < 0.3:
                self.connection.defer()  # for something else
            self.connection.complete_deferred([self.server.api.deferred.pop()])

    def unmute(self) -> None:
        if self.is_muted and not self.is_lost:
            self.is_muted = False
            self.connection.unmute()

    def next_slice(self) -> None:
        if self.server.scheduler.waiting:
            self.network.fills = self.source.random() < 0.3
            self.server.scheduler.waiting.pop(0)()

    def take_memory(self) -> None:
        """Another connection reserves receive memory, or releases it."""
        if self.reserved:
            self.reserved = False
            self.server.buffers.release_reservation(100_000)
        elif self.server.buffers.budget_bytes:
            self.reserved = self.server.buffers.try_reserve(100_000)

    def lose(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            self.connection.connection_lost(None)

    def step(self) -> None:
        self.source.choice(
            (
                self.receive,
                self.receive,
                self.complete,
                self.unmute,
                self.next_slice,
                self.take_memory,
                self.network.drain,
            )
        )()

    def finish(self) -> None:
        """Let everything happen that the connection waits for: all requests must get their response."""
        if self.reserved:
            self.take_memory()
        for _ in range(10_000):
            self.step()
            if self.reserved:
                self.take_memory()
            if len(self.network.received) == self.count and not self.network.is_full:
                return
        raise AssertionError(f"stuck in {self.connection._state} after {self.server.api.handled}")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> WatchedTransitions:
    table = WatchedTransitions()
    monkeypatch.setattr(connection_module, "TRANSITIONS", table)
    return table


def test_connection_responds_to_every_request_once_and_in_order(watched: WatchedTransitions) -> None:
    for seed in range(400):
        bench = Bench(random.Random(seed))
        bench.finish()
        numbers = list(range(bench.count))
        assert (bench.server.api.handled, bench.network.received) == (numbers, numbers), seed
        assert bench.connection._state is State.READY
        assert bench.network.is_reading
        bench.lose()
        assert (bench.server.buffers.owned_bytes, bench.server.buffers.reserved_bytes) == (0, 0)
        assert bench.server.buffers.waiting_count == 0


def test_connection_may_end_in_every_state(watched: WatchedTransitions) -> None:
    """No request is handled afterwards and no memory stays allocated. Every transition of the table is made here."""
    for seed in range(6000):
        source = random.Random(seed)
        bench = Bench(source)
        for _ in range(source.randint(0, 60)):
            bench.step()
        end = source.choice((bench.connection.close, bench.connection.abort, bench.lose))
        end()
        handled = list(bench.server.api.handled)
        bench.network.is_full &= end == bench.connection.abort  # a socket that is closed does not say when it is empty
        for _ in range(source.randint(0, 30)):
            bench.step()
        bench.connection.abort()
        bench.lose()
        bench.connection.close()
        for _ in range(20):
            bench.complete()
            bench.next_slice()
        if bench.reserved:
            bench.take_memory()
        assert bench.server.api.handled == handled
        assert bench.connection._state is State.CLOSED
        assert bench.server.lost == 1
        assert (bench.server.buffers.owned_bytes, bench.server.buffers.reserved_bytes) == (0, 0)
    assert set(TRANSITIONS) - watched.used == set()
