r"""Format strings of `ottla consume -f`, with kcat's fields: %t %p %o %k %s, \n and so on."""

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

import typer

from ottla.cli.records import encode_headers

if TYPE_CHECKING:
    from ottla.client.records import ConsumerRecord

FIELDS_HELP = (
    "%t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp in milliseconds, "
    r"%K and %S length of key and value (-1 for null), %R the same as %S in 4 bytes, %%; \n, \t, \r, \0, \\ and \xHH"
)
_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_TOKEN = re.compile(r"\\x([0-9A-Fa-f]{2})|\\(.)|%(.?)", re.DOTALL)

Writer: TypeAlias = "Callable[[ConsumerRecord], bytes]"


class RecordFormat:
    """A parsed format string. `null` stands for keys, values and header values that are null."""

    def __init__(self, text: str, null: bytes) -> None:
        self._null = null
        self._writers: list[Writer] = []
        writers = self._fields()
        position = 0
        for match in _TOKEN.finditer(text):
            self._add_literal(text[position : match.start()].encode())
            position = match.end()
            code, escape, field = match.groups()
            if code is not None:
                self._add_literal(bytes.fromhex(code))
            elif escape is not None:
                self._add_literal(_ESCAPES.get(escape, match[0].encode()))
            elif field == "%":
                self._add_literal(b"%")
            elif field in writers:
                self._writers.append(writers[field])
            else:
                raise typer.BadParameter(f"{match[0]!r} is not a field of a format; the fields are {FIELDS_HELP}")
        self._add_literal(text[position:].encode())
        if not any(f"%{field}" in text for field in writers):
            raise typer.BadParameter(
                f"the format {text!r} has no field such as %s; to wait for more records, use --follow or -F"
            )

    def write(self, records: "Iterable[ConsumerRecord]") -> bytes:
        return b"".join([write(record) for record in records for write in self._writers])

    def _add_literal(self, data: bytes) -> None:
        if data:
            self._writers.append(lambda record: data)

    def _fields(self) -> dict[str, Writer]:
        null = self._null
        return {
            "t": lambda record: record.topic.encode(),
            "p": lambda record: b"%d" % record.partition,
            "o": lambda record: b"%d" % record.offset,
            "T": lambda record: b"%d" % record.timestamp,
            "k": lambda record: null if record.key is None else record.key,
            "s": lambda record: null if record.value is None else record.value,
            "h": lambda record: encode_headers(record.headers, null),
            "K": lambda record: b"%d" % _length(record.key),
            "S": lambda record: b"%d" % _length(record.value),
            "R": lambda record: _length(record.value).to_bytes(4, "big", signed=True),
        }


def _length(content: bytes | None) -> int:
    return -1 if content is None else len(content)
