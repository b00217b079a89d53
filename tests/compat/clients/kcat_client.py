"""kcat: librdkafka (an older one) from the command line."""

import itertools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.compat.clients.base import BIG, Acks, At, Codec
from tests.compat.record import Headers, Read, Sent

FORMAT = r"%p %o %T %K %S %h\n%k%s\n"


class KcatClient:
    """Values are files, keys and headers are arguments: no empty keys or values, timestamps or NUL bytes."""

    name = "kcat"

    def missing(self) -> str | None:
        return None if shutil.which("kcat") else "there is no kcat"

    def can_send(self, record: Sent) -> bool:
        arguments = [
            record.key or b"-",
            *(word for name, value in record.headers for word in (name.encode(), value or b"")),
        ]
        named = all(value is not None for _, value in record.headers)
        plain = all(word.isascii() and b"\0" not in word for word in arguments)
        return (
            record.key != b"" and record.value != b"" and named and plain and (record.key, record.value) != (None, None)
        )

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        *,
        codec: Codec = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        settings = {
            "acks": acks,
            "enable.idempotence": str(idempotent).lower(),
            "message.max.bytes": str(BIG),
            "compression.type": codec,
        }
        groups = itertools.groupby(
            records, lambda record: (record.partition, record.key, record.headers, record.value is None)
        )
        with tempfile.TemporaryDirectory() as directory:
            for (partition, key, headers, is_null), group in groups:
                sent = list(group)
                assert all(map(self.can_send, sent)), sent
                arguments = ["-P", "-t", topic, "-p", str(partition)]
                arguments += [word for name, value in headers for word in ("-H", f"{name}={(value or b'').decode()}")]
                if is_null:  # an empty file is skipped: only a line with a key and nothing after it is a null
                    self._run(
                        bootstrap,
                        *arguments,
                        "-Z",
                        "-K",
                        ":",
                        settings=settings,
                        stdin=((key or b"") + b":\n") * len(sent),
                    )
                    continue
                arguments += [] if key is None else ["-k", key.decode()]
                files = [Path(directory, str(index)) for index in range(len(sent))]
                for path, record in zip(files, sent, strict=True):
                    path.write_bytes(record.value or b"")
                self._run(bootstrap, *arguments, *map(str, files), settings=settings)
        return [-1] * len(records)

    def consume(self, bootstrap: str, topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> list[Read]:
        settings = {
            "fetch.message.max.bytes": str(BIG),
            "receive.message.max.bytes": str(256 * 1024 * 1024),
            "fetch.wait.max.ms": "100",
        }
        found: list[Read] = []
        for partition, offset in start.items():
            count = end[partition] - offset
            if count > 0:
                arguments = [
                    "-C",
                    "-q",
                    "-e",
                    "-t",
                    topic,
                    "-p",
                    str(partition),
                    "-o",
                    str(offset),
                    "-c",
                    str(count),
                    "-f",
                    FORMAT,
                ]
                found += _parse(self._run(bootstrap, *arguments, settings=settings))
        return found

    def offsets(self, bootstrap: str, topic: str, partitions: Sequence[int], at: At) -> dict[int, int | None]:
        moment = {"earliest": -2, "latest": -1}[at] if isinstance(at, str) else at
        response: dict[int, int | None] = {}
        for partition in partitions:
            out = self._run(bootstrap, "-Q", "-t", f"{topic}:{partition}:{moment}").decode()
            offset = int(re.fullmatch(rf"{re.escape(topic)} \[{partition}\] offset (-?\d+)\s*", out)[1])  # type: ignore[index]
            response[partition] = None if offset < 0 else offset
        return response

    def partition_count(self, bootstrap: str, topic: str) -> int:
        for _ in range(50):
            out = self._run(bootstrap, "-L", "-t", topic, settings={"allow.auto.create.topics": "true"}).decode()
            count = int(re.search(rf'topic "{re.escape(topic)}" with (\d+) partitions', out)[1])  # type: ignore[index]
            if count:
                return count
        return 0

    def _run(
        self, bootstrap: str, *arguments: str, settings: Mapping[str, str] | None = None, stdin: bytes = b""
    ) -> bytes:
        options = [word for name, value in (settings or {}).items() for word in ("-X", f"{name}={value}")]
        done = subprocess.run(
            ["kcat", "-b", bootstrap, *options, *arguments], capture_output=True, timeout=60, input=stdin
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        return done.stdout


def _parse(out: bytes) -> list[Read]:
    """Parse kcat's output: lengths (-1 for null), and header names and values (`NULL` for null)."""
    found: list[Read] = []
    position = 0
    while position < len(out):
        match = re.compile(rb"(\d+) (\d+) (-?\d+) (-?\d+) (-?\d+) ").match(out, position)
        assert match is not None, out[position : position + 100]
        partition, offset, timestamp_ms, key_size, value_size = map(int, match.groups())
        # Headers may contain line breaks: the line ends where the lengths match the next record or the end.
        line_end = _line_end(out, match.end(), max(key_size, 0) + max(value_size, 0))
        headers = _headers(out[match.end() : line_end])
        key_end = line_end + 1 + max(key_size, 0)
        value_end = key_end + max(value_size, 0)
        key = None if key_size < 0 else out[line_end + 1 : key_end]
        value = None if value_size < 0 else out[key_end:value_end]
        found.append(Read(partition, offset, key, value, headers, timestamp_ms, None))
        position = value_end + 1
    return found


def _line_end(out: bytes, start: int, body: int) -> int:
    end = out.index(b"\n", start)
    while True:
        after = end + 1 + body + 1
        if after == len(out) or (
            out[after - 1 : after] == b"\n" and re.compile(rb"\d+ \d+ -?\d+ -?\d+ -?\d+ ").match(out, after)
        ):
            return end
        end = out.index(b"\n", end + 1)


def _headers(text: bytes) -> Headers:
    pairs = [pair.partition(b"=") for pair in text.split(b",")] if text else []
    return tuple((name.decode(), None if value == b"NULL" else value) for name, _, value in pairs)
