"""Configs with Kafka's names: defaults, both spellings, error messages."""

import pytest

from ottla.client import ConfigError
from ottla.client.admin_core import ADMIN_OPTIONS
from ottla.client.config import COMMON_OPTIONS, parse, parse_addresses
from ottla.client.producer_config import PRODUCER_OPTIONS, producer_settings

BOOTSTRAP = {"bootstrap.servers": "localhost:9092"}


def test_defaults_equal_kafkas():
    config = parse(BOOTSTRAP, {}, PRODUCER_OPTIONS, kind="The producer")
    expected = {
        "acks": -1, "batch.size": 16384, "buffer.memory": 33554432, "delivery.timeout.ms": 120000,
        "enable.idempotence": True, "linger.ms": 5, "max.block.ms": 60000, "max.in.flight.requests.per.connection": 5,
        "max.request.size": 1048576, "request.timeout.ms": 30000, "retries": 2147483647, "retry.backoff.ms": 100,
        "retry.backoff.max.ms": 1000, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 1000,
        "metadata.max.age.ms": 300000, "compression.type": "none",
    }  # fmt: skip
    assert {name: config[name] for name in expected} == expected


def test_dotted_and_underscored_names():
    config = parse(
        {"bootstrap.servers": "a:1, b:2"}, {"linger_ms": "7", "acks": "all"}, PRODUCER_OPTIONS, kind="The producer"
    )
    assert config["bootstrap.servers"] == ("a:1", "b:2")
    assert config["linger.ms"] == 7
    assert config.is_given("linger.ms")
    assert not config.is_given("batch.size")


@pytest.mark.parametrize(
    ("mapping", "keywords", "message"),
    [
        ({}, {}, "needs bootstrap.servers"),
        (BOOTSTRAP, {"linger_mss": 1}, "no config 'linger_mss'. Did you mean linger_ms?"),
        ({**BOOTSTRAP, "batch.sise": 1}, {}, "Did you mean batch.size?"),
        ({**BOOTSTRAP, "zzzz": 1}, {}, "no config 'zzzz'.$"),
        (BOOTSTRAP, {"bootstrap_servers": "a:1"}, "bootstrap.servers was given twice"),
        (BOOTSTRAP, {"linger_ms": -1}, "linger.ms must be at least 0, not -1"),
        (BOOTSTRAP, {"batch_size": "many"}, "batch.size must be a whole number, not 'many'"),
        (BOOTSTRAP, {"batch_size": True}, "batch.size must be a whole number"),
        (BOOTSTRAP, {"enable_idempotence": "perhaps"}, "must be true or false"),
        (BOOTSTRAP, {"acks": 2}, "acks must be 'all', 1 or 0, not 2"),
        (BOOTSTRAP, {"compression_type": "zip"}, "one of none, gzip, snappy, lz4, zstd"),
        (BOOTSTRAP, {"compression_gzip_level": 10}, "from -1 to 9"),
        (BOOTSTRAP, {"security_protocol": "SASL_SSL"}, "security.protocol must be one of PLAINTEXT"),
        (BOOTSTRAP, {"sasl_mechanism": "PLAIN"}, "only PLAINTEXT"),
        ({"bootstrap.servers": "localhost"}, {}, "'localhost' is not host:port"),
        ({"bootstrap.servers": "localhost:0"}, {}, "is not host:port"),
        (BOOTSTRAP, {"enable_idempotence": True, "acks": 1}, "enable.idempotence is true, so acks must be 'all'"),
        (
            BOOTSTRAP,
            {"delivery_timeout_ms": 10, "request_timeout_ms": 20},
            "at least linger.ms \\+ request.timeout.ms, 25, not 10",
        ),
        (BOOTSTRAP, {"transactional_id": "t"}, "not support transactions yet"),
        (BOOTSTRAP, {"value_serializer": "json"}, "must be a function"),
        (BOOTSTRAP, {"partitioner_class": "Mine"}, "must be a function or 'RoundRobinPartitioner'"),
        (BOOTSTRAP, {"partitioner_class": 7}, "partitioner.class must be a function"),
    ],
)
def test_invalid_configs_raise(mapping, keywords, message):
    with pytest.raises(ConfigError, match=message) as caught:
        producer_settings(mapping, keywords)
    assert caught.value.name == "INVALID_CONFIG"
    assert isinstance(caught.value, ValueError)


def test_ignored_configs_are_accepted():
    assert (
        parse({**BOOTSTRAP, "metric.reporters": "x", "send.buffer.bytes": "1"}, {}, ADMIN_OPTIONS, kind="Admin")[
            "client.id"
        ]
        == "ottla"
    )


@pytest.mark.parametrize(
    "against", [{"acks": "1"}, {"acks": 0}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}]
)
def test_conflicting_config_disables_idempotence(against):
    """As in Java, unless enable.idempotence was given explicitly."""
    assert producer_settings(BOOTSTRAP, against).is_idempotent is False
    assert producer_settings(BOOTSTRAP, {}).is_idempotent is True


def test_delivery_timeout_covers_a_request():
    assert producer_settings(BOOTSTRAP, {"request_timeout_ms": 200_000}).delivery_timeout_ms == 200_005


def test_compression_level_follows_the_codec():
    assert (
        producer_settings(BOOTSTRAP, {"compression_type": "zstd", "compression_zstd_level": 9}).compression_level == 9
    )
    assert producer_settings(BOOTSTRAP, {"compression_type": "snappy"}).compression_level is None
    assert producer_settings(BOOTSTRAP, {}).codec == 0


def test_addresses_are_parsed():
    assert parse_addresses(["h:1", "[::1]:2", "PLAINTEXT://x.example:3"]) == [("h", 1), ("::1", 2), ("x.example", 3)]


def test_options_are_unique():
    for options in (COMMON_OPTIONS, PRODUCER_OPTIONS, ADMIN_OPTIONS):
        assert len({option.name for option in options}) == len(options)
