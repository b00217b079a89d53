"""Fixtures for message tests: all declared messages, sampled values, and Kafka's own schemas."""

import importlib
import json
import pkgutil
import re
import zipfile
from collections.abc import Callable, Iterator
from random import Random
from types import ModuleType
from typing import Any

import pytest

import ottla.wire.messages
import ottla.wire.records
from bench.peers import jar_cache
from ottla.wire.fields import FIXED, Field
from ottla.wire.schema import Message

Sampler = Callable[[type[Message], int, Random], Message]

INTEGERS = {
    "i8": (-0x80, 0x7F),
    "i16": (-0x8000, 0x7FFF),
    "u16": (0, 0xFFFF),
    "i32": (-0x8000_0000, 0x7FFF_FFFF),
    "u32": (0, 0xFFFF_FFFF),
    "i64": (-0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF),
}


def declared_messages() -> Iterator[type[Message]]:
    """Yield every top-level message and record."""
    for package in (ottla.wire.messages, ottla.wire.records):
        for info in pkgutil.iter_modules(package.__path__):
            module: ModuleType = importlib.import_module(f"{package.__name__}.{info.name}")
            own = [
                value
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == module.__name__
            ]
            yield from [value for value in own if issubclass(value, Message) and hasattr(value, "MIN_VERSION")]


MESSAGES = list(declared_messages())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with the argument `any_message` for every message."""
    if "any_message" in metafunc.fixturenames:
        metafunc.parametrize("any_message", MESSAGES, ids=[cls.__name__ for cls in MESSAGES])


def sample_value(field: Field, type_name: str, version: int, random: Random) -> Any:
    """Return a value: limits of the type, lengths where a varint grows, or an ordinary value."""
    if type_name in INTEGERS:
        return random.choice([*INTEGERS[type_name], 0, 1, random.randint(*INTEGERS[type_name])])
    if type_name == "boolean":
        return random.random() < 0.5
    if type_name == "f64":
        return random.choice([0.0, -1.5, 1e300, random.random()])
    if type_name == "uuid":
        return random.choice([bytes(16), random.randbytes(16)])
    length = random.choice([0, 1, 5, 20, 126, 127, 300])
    if type_name == "string":
        return random.choice(["topic-", "é", "日本", "🎈"]) * length
    return random.randbytes(length)


def sample_field(field: Field, version: int, random: Random) -> Any:
    if field.nullable_in(version) and random.random() < 0.3:
        return None
    if field.type == "struct":
        return sample(field.item, version, random)
    if field.type != "array":
        return sample_value(field, field.type, version, random)
    if isinstance(field.item, str):
        count = random.choice([0, 1, 2, 3, 9, 10, 130] if field.item in FIXED else [0, 1, 2])
        return [sample_value(field, field.item, version, random) for _ in range(count)]
    return [sample(field.item, version, random) for _ in range(random.choice([0, 1, 1, 2, 3]))]


def sample(cls: type[Message], version: int, random: Random) -> Message:
    """Return an instance with a value for exactly the fields of the version."""
    return cls(
        **{field.name: sample_field(field, version, random) for field in cls.FIELDS if field.in_version(version)}
    )


@pytest.fixture(scope="session")
def all_messages() -> list[type[Message]]:
    return MESSAGES


@pytest.fixture(scope="session")
def sampler() -> Sampler:
    return sample


@pytest.fixture(scope="session")
def kafka_schemas() -> dict[str, dict[str, Any]]:
    """The schemas in Kafka's jars, by message name."""
    jars = sorted((jar_cache() / "libs").glob("kafka-*.jar"))
    if not jars:
        pytest.skip(
            f"no Kafka jars in {jar_cache()}: cannot compare declarations with Kafka's schemas (set KAFKA_JARS to use "
            "another directory)"
        )
    schemas = {}
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                    schema = json.loads(re.sub(r"(?m)(^|\s)//.*$", "", archive.read(name).decode()))
                    schemas[schema["name"]] = schema
    return schemas
