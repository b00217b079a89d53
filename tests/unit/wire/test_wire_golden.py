"""Messages encoded by Apache Kafka's own classes, with values drawn from its schemas (`tools/golden_messages.py`)."""

import base64
import json
import re
from pathlib import Path
from typing import Any

from ottla.base.ids import uuid_from_text
from ottla.wire.schema import Message, decode, encode

GOLDEN = Path(__file__).parents[2] / "data" / "golden_messages.json"


def from_json(type_name: str | type[Message], value: Any) -> Any:
    """Convert a value from Kafka's JSON form."""
    if value is None:
        return None
    if not isinstance(type_name, str):
        fields = {field.name: field for field in type_name.FIELDS}
        given = {re.sub(r"(?=[A-Z])", "_", name).lower(): item for name, item in value.items()}
        return type_name(**{name: field_from_json(fields[name], item) for name, item in given.items()})
    if type_name == "uuid":
        return uuid_from_text(value)
    if type_name in ("binary", "batches"):
        return base64.b64decode(value)
    return value


def field_from_json(field: Any, value: Any) -> Any:
    if field.type == "array":
        return None if value is None else [from_json(field.item, item) for item in value]
    return from_json(field.item if field.type == "struct" else field.type, value)


def test_codecs_agree_with_kafkas_bytes(any_message: type[Message]) -> None:
    """Encoding and decoding, for the recorded versions of each message."""
    cases = [case for case in json.loads(GOLDEN.read_text()) if case["message"] == any_message.__name__]
    assert cases, f"no golden bytes of {any_message.__name__}: run tools/golden_messages.py"
    for case in cases:
        message, encoded = from_json(any_message, case["values"]), bytes.fromhex(case["encoded"])
        assert encode(message, case["version"]) == encoded
        assert decode(any_message, case["version"], encoded) == (message, len(encoded))
