"""Who is let in, who waits and who is refused."""

import logging

import pytest

from ottla.metadata.configs import BrokerLayers
from ottla.server.limits import Admission, ConnectionCounts, ConnectionSettings, connection_settings, read_overrides
from ottla.server.loop_lag import LoopLag
from ottla.server.occasional import OccasionalLog

ADMITTED, WAITING, REFUSED = Admission.ADMITTED, Admission.WAITING, Admission.REFUSED


def test_settings_come_from_all_layers():
    layers = BrokerLayers({"max.connections": "9", "listener.name.inside.max.connections": "7"},
                          {"max.connections.per.ip": "5"}, {"max.connections.per.ip.overrides": "10.0.0.1:3, [::1]:4"})
    assert connection_settings(layers, ["INSIDE", "OUTSIDE"]) == ConnectionSettings(9, 5, {"10.0.0.1": 3, "::1": 4}, {"INSIDE": 7})


@pytest.mark.parametrize("text", ["here", "host:", ":5", "host:many", "host:-1", "a:1,b"])
def test_overrides_that_are_none(text):
    with pytest.raises(ValueError, match="must be a list of host:number"):
        read_overrides(text)


def test_an_address_has_its_share_and_gets_it_back():
    counts = ConnectionCounts(ConnectionSettings(100, 2, {"special": 1}))
    assert [counts.on_accepted("L", "a") for _ in range(3)] == [ADMITTED, ADMITTED, REFUSED]
    assert [counts.on_accepted("L", "special") for _ in range(2)] == [ADMITTED, REFUSED]
    counts.on_ended("L", "a")
    assert counts.on_accepted("L", "a") is ADMITTED
    assert (counts.total, counts.by_listener) == (3, {"L": 3})


def test_places_of_all_and_of_a_listener():
    counts = ConnectionCounts(ConnectionSettings(3, 100, {}, {"SMALL": 1}))
    assert [counts.on_accepted("SMALL", "a") for _ in range(2)] == [ADMITTED, WAITING]
    assert [counts.on_accepted("LARGE", "a") for _ in range(3)] == [ADMITTED, ADMITTED, WAITING]
    counts.on_ended("LARGE", "a")
    assert (counts.has_place("SMALL"), counts.has_place("LARGE")) == (False, True)


def test_brokers_come_in_where_clients_took_all_places():
    counts = ConnectionCounts(ConnectionSettings(1, 100), protected_listener="BROKERS")
    assert counts.on_accepted("CLIENTS", "a") is ADMITTED
    assert not counts.may_be_closed("CLIENTS")
    assert counts.on_accepted("BROKERS", "b") is ADMITTED
    assert (counts.may_be_closed("CLIENTS"), counts.may_be_closed("BROKERS")) == (True, False)


def test_a_line_is_logged_once_in_a_second_and_the_others_are_counted(caplog):
    times = iter((0.0, 0.2, 0.9, 1.0, 5.0))
    occasional = OccasionalLog(logging.getLogger("test.occasional"), logging.WARNING, lambda: next(times))
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            occasional.say("it was %d", number)
    assert [record.getMessage() for record in caplog.records] == [
        "it was 0", "it was 3 (2 lines like this were left out)", "it was 4"]


class Timers:
    """A loop whose one timer rings when the test says so."""

    def __init__(self):
        self.now = 0.0
        self.due = self.callback = None

    def time(self):
        return self.now

    def call_at(self, when, callback):
        self.due, self.callback = when, callback
        return self

    def cancel(self):
        self.callback = None


def test_lag_is_how_late_the_timer_rings():
    loop, heard = Timers(), []
    lag = LoopLag(loop, heard.append)
    lag.start()
    for late in (0.0, 0.0005, 0.03, 9.0):
        loop.now = loop.due + late
        loop.callback()
    assert [round(seconds, 4) for seconds in heard] == [0.0, 0.0005, 0.03, 9.0]
    assert lag.counts == [2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    assert round(lag.sum_seconds, 4) == 9.0305
    lag.stop()
    assert loop.callback is None
