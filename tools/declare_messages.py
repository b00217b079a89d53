"""Writes declarations in the notation of `ottla.wire.schema` from the JSON schemas that Apache Kafka publishes in its jars.

    python tools/declare_messages.py SOURCE NAME...       e.g. ~/kafka/libs MetadataRequest MetadataResponse

SOURCE is a folder of Kafka's jars, or one that holds the JSON files themselves at any depth. The text goes to the standard output
as one module; its docstring, and what a class is for, are for the author to say.
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
    "boolean": "bool", "i8": "int", "i16": "int", "u16": "int", "i32": "int", "u32": "int", "i64": "int", "f64": "float",
    "string": "str", "binary": "bytes", "batches": "Buffer", "uuid": "Uuid",
}  # fmt: skip
OPEN_END = 32767


def read_schemas(source: Path) -> dict[str, Schema]:
    """Every schema that the jars or files below a folder hold, by the name of its message."""
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
    """The versions that brokers offer; the newest may be marked as unfinished."""
    first, last = versions(schema["validVersions"])
    return first, last - bool(schema.get("latestVersionUnstable"))


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def field_versions(field: Schema) -> str:
    text: str = field.get("versions") or field["taggedVersions"]
    return text


def import_order(word: str) -> tuple[bool, bool, str, int]:
    """Constants, classes, functions, and i8 before i16."""
    return not word.isupper(), not word[0].isupper(), word.rstrip("0123456789"), int(re.sub(r"\D", "", word) or 0)


class Module:
    """The classes of one module in the order in which they must stand."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self.words: set[str] = set()

    def add_message(self, schema: Schema, pair: Schema | None) -> None:
        """`pair` is the request of a response: its unfinished version is not the response's either."""
        first, last = stable_versions(schema)
        if pair is not None:
            last = min(last, stable_versions(pair)[1])
        flexible = versions(schema["flexibleVersions"])
        head = [f"    API_KEY = {schema['apiKey']}"] if "apiKey" in schema else []
        head += [f"    MIN_VERSION = {first}", f"    MAX_VERSION = {last}"]
        head += [f"    FLEXIBLE_FROM = {flexible[0] if flexible[1] >= flexible[0] else 'NEVER'}", ""]
        if "NEVER" in head[-2]:
            self.words.add("NEVER")
        common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
        nested, lines = self.fields(schema["fields"], common, (first, last))
        self.classes[schema["name"]] = "\n".join([f"class {schema['name']}(Message):", *head, *nested, *lines]).rstrip()

    def add_struct(
        self, name: str, fields: list[Schema], common: dict[str, list[Schema]], valid: tuple[int, int]
    ) -> list[str]:
        """Declare a struct; where another message of the module has a different one of its name, hand it back to be nested."""
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
        kind, item, is_array = field["type"], field["type"].removeprefix("[]"), field["type"].startswith("[]")
        item_word = SPECIFIERS.get(item, item)
        annotation = ANNOTATIONS.get(item_word, item_word)
        self.words |= {annotation} & {"Buffer", "Uuid"}
        word = "array" if is_array else item_word if item in SPECIFIERS else "struct"
        self.words |= {word} | ({item_word} if item in SPECIFIERS else set())
        arguments = [item_word] if word in ("array", "struct") else []
        arguments.append(f'"{field_versions(field)}"')
        null = field.get("default") == "null" or kind == "records"
        if "nullableVersions" in field:
            arguments.append(f'nullable="{field["nullableVersions"]}"')
        arguments.append(self.default(word, item_word, field.get("default"), null))
        if "tag" in field:
            arguments.append(f"tag={field['tag']}")
            if field["taggedVersions"] != field_versions(field):
                arguments.append(f'tagged="{field["taggedVersions"]}"')
        if field.get("ignorable"):
            arguments.append("ignorable=True")
        annotation = f"list[{annotation}]" if is_array else annotation
        if null or overlap(versions(field.get("nullableVersions", "none")), valid):
            annotation += " | None"
        return f"    {snake_case(field['name'])}: {annotation} = {word}({', '.join(arguments)})"

    def default(self, word: str, item_word: str, default: Any, null: bool) -> str:
        if null:
            return "default=None"
        if word == "array":
            return "default=()"
        if word == "struct":
            return f"factory={item_word}"
        if word == "uuid":
            self.words.add("ZERO_UUID")
            return "default=ZERO_UUID"
        if word == "boolean":
            return f"default={str(default).lower() == 'true'}"
        if word == "string":
            return f"default={json.dumps(default or '')}"
        if word == "binary":
            return 'default=b""'
        if word == "f64":
            return f"default={float(default or 0)}"
        return f"default={int(str(default or 0), 0)}"

    def text(self) -> str:
        ids = sorted(self.words & {"Uuid", "ZERO_UUID"}, key=import_order)
        words = sorted(self.words - {"Buffer", "Uuid", "ZERO_UUID"} | {"Message"}, key=import_order)
        imports = [f"from ottla.base.ids import {', '.join(ids)}"] if ids else []
        imports += ["from ottla.base.ports import Buffer"] if "Buffer" in self.words else []
        imports.append(f"from ottla.wire.schema import {', '.join(words)}")
        return "\n\n\n".join(["\n".join(imports), *self.classes.values()]) + "\n"


def main(arguments: list[str]) -> None:
    if len(arguments) < 2:
        sys.exit(str(__doc__))
    schemas = read_schemas(Path(arguments[0]).expanduser())
    module = Module()
    for name in arguments[1:]:
        if name not in schemas:
            sys.exit(f"no schema of {name} in {arguments[0]}")
        module.add_message(
            schemas[name], schemas.get(name.removesuffix("Response") + "Request") if name.endswith("Response") else None
        )
    sys.stdout.write(module.text())


if __name__ == "__main__":
    main(sys.argv[1:])
