"""Encode sampled messages with Apache Kafka's own classes, and print values and bytes for the tests.

    python -m tools.golden_messages JARS NAME... > tests/data/golden_messages.json

JARS is the directory of Kafka's jars. Needs java. Values are sampled from Kafka's schemas with a fixed seed, so neither
values nor bytes depend on Ottla's declarations. Of a message with more than five versions, three are included: the
first, the first flexible one and the last.
"""

import base64
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

from tools.declare_messages import Schema, field_versions, read_schemas, stable_versions, versions

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
VERSIONS_MAX = 5
TEXTS = ("", "a", "topic-1", "größe", "日本語", "x" * 126, "x" * 127)


def sample(fields: list[Schema], common: dict[str, list[Schema]], version: int, random: Random) -> dict[str, Any]:
    """Return a value for each field of a version, and for half of the tagged fields."""
    values = {}
    for field in fields:
        first, last = versions(field_versions(field))
        if not first <= version <= last or ("tag" in field and random.random() < 0.5):
            continue
        name = field["name"][0].lower() + field["name"][1:]
        values[name] = sample_field(field, common, version, random)
    return values


def sample_field(field: Schema, common: dict[str, list[Schema]], version: int, random: Random) -> Any:
    first, last = versions(field.get("nullableVersions", "none"))
    if first <= version <= last and random.random() < 0.3:
        return None
    type_name = field["type"]
    if type_name.startswith("[]"):
        item = {**field, "type": type_name.removeprefix("[]"), "nullableVersions": "none"}
        return [sample_field(item, common, version, random) for _ in range(random.choice([0, 1, 2]))]
    if type_name in BITS:
        limit = 1 << BITS[type_name] - 1
        return random.choice([-limit, limit - 1, -1, 0, 1, random.randrange(-limit, limit)])
    if type_name in ("uint16", "uint32"):
        return random.choice([0, 1, (1 << int(type_name[4:])) - 1])
    if type_name == "bool":
        return random.random() < 0.5
    if type_name == "float64":
        return random.choice([0.0, -1.5, 1e300])
    if type_name == "string":
        return random.choice(TEXTS)
    if type_name in ("bytes", "records"):
        return base64.b64encode(random.randbytes(random.choice([0, 3, 130]))).decode()
    if type_name == "uuid":
        return base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
    return sample(field.get("fields") or common[type_name], common, version, random)


def main(arguments: list[str]) -> None:
    if len(arguments) < 2:
        sys.exit(str(__doc__))
    jars = Path(arguments[0]).expanduser()
    schemas = read_schemas(jars)
    cases = []
    for name in arguments[1:]:
        schema = schemas[name]
        first, last = stable_versions(schema)
        if name.endswith("Response"):
            last = min(last, stable_versions(schemas[name.removesuffix("Response") + "Request"])[1])
        flexible = versions(schema["flexibleVersions"])[0]
        common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
        selected = (
            {first, min(max(first, flexible), last), last}
            if last - first >= VERSIONS_MAX
            else {*range(first, last + 1)}
        )
        for version in sorted(selected):
            values = sample(schema["fields"], common, version, Random(f"{name} {version}"))
            cases.append({"message": name, "version": version, "values": values})
    lines = "".join([f"{case['message']}\t{case['version']}\t{json.dumps(case['values'])}\n" for case in cases])
    source = Path(__file__).with_name("GoldenMessages.java")
    command = ["java", "-cp", f"{jars}/*", str(source)]
    encoded = subprocess.run(command, input=lines, check=True, capture_output=True, text=True).stdout.split("\n")
    for case, text in zip(cases, encoded, strict=False):
        case["encoded"] = text
    rows = ",\n".join([json.dumps(case, ensure_ascii=False) for case in cases])
    sys.stdout.write(f"[\n{rows}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1:])
