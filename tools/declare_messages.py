"""Generate message declarations for `ottla.wire.schema` from the JSON schemas in Apache Kafka's jars.

    python tools/declare_messages.py SOURCE NAME...       e.g. ~/kafka/libs MetadataRequest MetadataResponse

SOURCE is a directory with Kafka's jars, or with the JSON files at any depth. Prints one module; add its docstrings by
hand.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

SPECIFIERS = {
    "bool": "boolean", "int8": "i8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64",
    "float64": "f64", "string": "string", "bytes": "binary", "records": "batches", "uuid": "uuid",
}  # fmt: skip
ANNOTATIONS = {
    "boolean": "bool", "i8": "int", "i16": "int", "u16": "int", "i32": "int", "u32": "int", "i64": "int",
    "f64": "float", "string": "str", "binary": "bytes", "batches": "Buffer", "uuid": "Uuid",
}  # fmt: skip
OPEN_END = 32767


def read_schemas(source: Path) -> dict[str, Schema]:
    """Return the schemas in all jars and JSON files below a directory, by message name."""
    texts = [path.read_text() for path in sorted(source.rglob("*.json"))]
    for jar in sorted(source.glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            names = [
                name for name in archive.namelist() if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name)
            ]
            texts += [archive.read(name).decode() for name in names]
    schemas = [json.loads(re.sub(r"(?m)(^|\s)//.*$", "", text)) for text in texts]
    return {schema["name"]: schema for schema in schemas}


def versions(text: str) -> tuple[int, int]:
    if text == "none":
        return 0, -1
    if text.endswith("+"):
        return int(text[:-1]), OPEN_END
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return max(a[0], b[0]) <= min(a[1], b[1])


def stable_versions(schema: Schema) -> tuple[int, int]:
    """Return the versions that brokers support, without a last one that is marked unstable."""
    first, last = versions(schema["validVersions"])
    return first, last - bool(schema.get("latestVersionUnstable"))


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def field_versions(field: Schema) -> str:
    text: str = field.get("versions") or field["taggedVersions"]
    return text


def import_order(specifier: str) -> tuple[bool, bool, str, int]:
    """Sort key: constants, classes, functions, and i8 before i16."""
    return (
        not specifier.isupper(),
        not specifier[0].isupper(),
        specifier.rstrip("0123456789"),
        int(re.sub(r"\D", "", specifier) or 0),
    )


class Module:
    """The classes of one module, in order of definition."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self.imports: set[str] = set()

    def add_message(self, schema: Schema, pair: Schema | None) -> None:
        """Declare a message. `pair` is the request of a response; its unstable version applies to the response too."""
        first, last = stable_versions(schema)
        if pair is not None:
            last = min(last, stable_versions(pair)[1])
        flexible = versions(schema["flexibleVersions"])
        head = [f"    API_KEY = {schema['apiKey']}"] if "apiKey" in schema else []
        head += [f"    MIN_VERSION = {first}", f"    MAX_VERSION = {last}"]
        head += [f"    FLEXIBLE_FROM = {flexible[0] if flexible[1] >= flexible[0] else 'NEVER'}", ""]
        if "NEVER" in head[-2]:
            self.imports.add("NEVER")
        common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
        nested, lines = self.fields(schema["fields"], common, (first, last))
        self.classes[schema["name"]] = "\n".join([f"class {schema['name']}(Message):", *head, *nested, *lines]).rstrip()

    def add_struct(
        self, name: str, fields: list[Schema], common: dict[str, list[Schema]], valid: tuple[int, int]
    ) -> list[str]:
        """Declare a struct. If the name is taken by a different struct, return its lines, to be nested."""
        nested, lines = self.fields(fields, common, valid)
        text = "\n".join([f"class {name}(Message):", *nested, *(lines or ["    pass"])])
        if self.classes.setdefault(name, text) == text:
            return []
        return [*["    " + line if line else "" for line in text.split("\n")], ""]

    def fields(
        self, fields: list[Schema], common: dict[str, list[Schema]], valid: tuple[int, int]
    ) -> tuple[list[str], list[str]]:
        nested: list[str] = []
        lines: list[str] = []
        for field in fields:
            if not overlap(versions(field_versions(field)), valid):
                continue
            item = field["type"].removeprefix("[]")
            if item not in SPECIFIERS:
                nested += self.add_struct(item, field.get("fields") or common[item], common, valid)
            lines.append(self.field(field, valid))
        return nested, lines

    def field(self, field: Schema, valid: tuple[int, int]) -> str:
        type_name, item, is_array = field["type"], field["type"].removeprefix("[]"), field["type"].startswith("[]")
        item_specifier = SPECIFIERS.get(item, item)
        annotation = ANNOTATIONS.get(item_specifier, item_specifier)
        self.imports |= {annotation} & {"Buffer", "Uuid"}
        specifier = "array" if is_array else item_specifier if item in SPECIFIERS else "struct"
        self.imports |= {specifier} | ({item_specifier} if item in SPECIFIERS else set())
        arguments = [item_specifier] if specifier in ("array", "struct") else []
        arguments.append(f'"{field_versions(field)}"')
        null = field.get("default") == "null" or type_name == "records"
        if "nullableVersions" in field:
            arguments.append(f'nullable="{field["nullableVersions"]}"')
        arguments.append(self.default(specifier, item_specifier, field.get("default"), null))
        if "tag" in field:
            arguments.append(f"tag={field['tag']}")
            if field["taggedVersions"] != field_versions(field):
                arguments.append(f'tagged="{field["taggedVersions"]}"')
        if field.get("ignorable"):
            arguments.append("ignorable=True")
        annotation = f"list[{annotation}]" if is_array else annotation
        if null or overlap(versions(field.get("nullableVersions", "none")), valid):
            annotation += " | None"
        return f"    {snake_case(field['name'])}: {annotation} = {specifier}({', '.join(arguments)})"

    def default(self, specifier: str, item_specifier: str, default: Any, null: bool) -> str:
        if null:
            return "default=None"
        if specifier == "array":
            return "default=()"
        if specifier == "struct":
            return f"factory={item_specifier}"
        if specifier == "uuid":
            self.imports.add("ZERO_UUID")
            return "default=ZERO_UUID"
        if specifier == "boolean":
            return f"default={str(default).lower() == 'true'}"
        if specifier == "string":
            return f"default={json.dumps(default or '')}"
        if specifier == "binary":
            return 'default=b""'
        if specifier == "f64":
            return f"default={float(default or 0)}"
        return f"default={int(str(default or 0), 0)}"

    def text(self) -> str:
        ids = sorted(self.imports & {"Uuid", "ZERO_UUID"}, key=import_order)
        words = sorted(self.imports - {"Buffer", "Uuid", "ZERO_UUID"} | {"Message"}, key=import_order)
        imports = [f"from ottla.base.ids import {', '.join(ids)}"] if ids else []
        imports += ["from ottla.base.ports import Buffer"] if "Buffer" in self.imports else []
        imports.append(f"from ottla.wire.schema import {', '.join(words)}")
        return "\n\n\n".join(["\n".join(imports), *self.classes.values()]) + "\n"


def main(arguments: list[str]) -> None:
    if len(arguments) < 2:
        sys.exit(str(__doc__))
    schemas = read_schemas(Path(arguments[0]).expanduser())
    module = Module()
    for name in arguments[1:]:
        if name not in schemas:
            sys.exit(f"no schema for {name} in {arguments[0]}")
        module.add_message(
            schemas[name], schemas.get(name.removesuffix("Response") + "Request") if name.endswith("Response") else None
        )
    sys.stdout.write(module.text())


if __name__ == "__main__":
    main(sys.argv[1:])
