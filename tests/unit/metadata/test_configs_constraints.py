"""Combinations of broker configs that Kafka 4.3 accepts or rejects. Each line was checked with Kafka's own class."""

import pytest

from ottla.metadata.configs import InvalidConfig, validate_broker_config
from ottla.metadata.configs.constraints import validate_broker_constraints

VALID = """
log.retention.ms=-5
cordoned.log.dirs=/a
cordoned.log.dirs=*
log.cleaner.dedupe.buffer.size=1048577
log.cleaner.dedupe.buffer.size=2097154;log.cleaner.threads=2
replica.fetch.wait.max.ms=30000
queued.max.request.bytes=0
queued.max.request.bytes=-7
queued.max.request.bytes=104857600
connections.max.idle.ms=-1
group.share.max.delivery.count.limit=5;group.share.min.delivery.count.limit=5
remote.log.storage.system.enable=true
default.replication.factor=0
"""
INVALID = """
log.roll.ms=0
log.roll.ms=-1
log.roll.jitter.ms=-1
log.retention.ms=0
log.retention.hours=0
log.retention.minutes=0
cordoned.log.dirs=/b
cordoned.log.dirs=*,/a
log.cleaner.dedupe.buffer.size=1048576
log.cleaner.dedupe.buffer.size=1000;log.cleaner.enable=false
log.cleaner.threads=0
log.cleaner.threads=1000
replica.fetch.wait.max.ms=30001
replica.fetch.wait.max.ms=20000;replica.lag.time.max.ms=10000
replica.lag.time.max.ms=1
queued.max.request.bytes=5
connection.failed.authentication.delay.ms=600000
connections.max.idle.ms=50
group.consumer.max.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=70000
group.consumer.session.timeout.ms=1000
group.consumer.session.timeout.ms=70000
group.consumer.heartbeat.interval.ms=1
group.consumer.heartbeat.interval.ms=20000
group.consumer.min.heartbeat.interval.ms=20000
group.consumer.max.heartbeat.interval.ms=1
group.consumer.heartbeat.interval.ms=50000;group.consumer.max.heartbeat.interval.ms=60000
group.consumer.assignment.interval.ms=20000
group.consumer.min.assignment.interval.ms=5000
group.consumer.min.assignment.interval.ms=20000
group.share.session.timeout.ms=1000
group.share.session.timeout.ms=70000
group.share.min.session.timeout.ms=70000
group.share.heartbeat.interval.ms=1
group.share.heartbeat.interval.ms=50000;group.share.max.heartbeat.interval.ms=60000
group.share.min.heartbeat.interval.ms=20000
group.share.assignment.interval.ms=20000
group.share.delivery.count.limit=10;group.share.max.delivery.count.limit=9
group.share.delivery.count.limit=2;group.share.min.delivery.count.limit=3
group.share.record.lock.duration.ms=70000
group.share.record.lock.duration.ms=1000
group.share.partition.max.record.locks=5000
group.share.partition.max.record.locks=100;group.share.min.partition.max.record.locks=200
group.streams.session.timeout.ms=1000
group.streams.session.timeout.ms=70000
group.streams.heartbeat.interval.ms=1
group.streams.heartbeat.interval.ms=50000;group.streams.max.heartbeat.interval.ms=60000
group.streams.num.standby.replicas=5
group.streams.assignment.interval.ms=20000
"""


def configs(line: str) -> dict[str, str]:
    given = dict(pair.split("=", 1) for pair in line.split(";"))
    for name, value in given.items():
        validate_broker_config(name, value)
    return {"log.dirs": "/a"} | given


@pytest.mark.parametrize("line", VALID.split())
def test_valid_combination_is_accepted(line: str) -> None:
    validate_broker_constraints(configs(line))


@pytest.mark.parametrize("line", INVALID.split())
def test_invalid_combination_is_rejected(line: str) -> None:
    """The error names one of the given configs."""
    given = configs(line)
    with pytest.raises(InvalidConfig) as raised:
        validate_broker_constraints(given)
    assert raised.value.value == given[raised.value.name]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "replica.lag.time.max.ms=1",
            "replica.lag.time.max.ms = '1': must be at least replica.fetch.wait.max.ms, which is 500",
        ),
        (
            "group.max.size=1;replica.fetch.wait.max.ms=40000",
            "replica.fetch.wait.max.ms = '40000': must be at most replica.socket.timeout.ms, which is 30000",
        ),
        ("log.retention.hours=0", "log.retention.hours = '0': must be at least 1, or -1 for no limit"),
        ("log.roll.ms=0", "log.roll.ms = '0': must be at least 1"),
        (
            "connections.max.idle.ms=9",
            "connections.max.idle.ms = '9': must be above connection.failed.authentication.delay.ms, which is 100",
        ),
        ("cordoned.log.dirs=/b", "cordoned.log.dirs = '/b': /b is not one of the log directories /a"),
        (
            "log.cleaner.threads=200",
            "log.cleaner.threads = '200': leaves 671088 bytes per cleaner thread; more than 1 MB is required",
        ),
    ],
)
def test_constraint_error_message(line: str, message: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        validate_broker_constraints(configs(line))
    assert str(raised.value) == message
