"""Group members as processes, and their common state."""

import itertools
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from bench.peers import TOOL_FLAGS, jar_cache, java_command
from tests.compat.clients import programs
from tests.compat.clients.jvm import JAVA_SOURCES
from tests.compat.group_member import HEARTBEAT_MS, session_ms

WAIT_SECONDS_MAX = 40.0
JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}
KCAT_ASSIGNED = re.compile(rb"assigned: (.*)")


class Member:
    """A process that reads as one group member; a thread reads its events."""

    def __init__(
        self, name: str, client: str, bootstrap: str, group: str, topic: str, assignor: str, instance: str | None
    ) -> None:
        self.name = name
        self.owned: list[int] = []
        self.assignments = 0
        """Number of assignments."""
        self.read: dict[int, list[int]] = {}
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when something fails
        self._client = client
        command = _command(client, bootstrap, group, topic, assignor, instance)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe if client == "kcat" else self.errors
        )
        streams = [self.process.stdout, self.process.stderr] if client == "kcat" else [self.process.stdout]
        self._threads = [threading.Thread(target=self._read_events, args=(stream,), daemon=True) for stream in streams]
        for thread in self._threads:
            thread.start()

    def kill(self) -> None:
        self.process.kill()
        self._on_exit()

    def leave(self) -> None:
        """Stop it regularly, as a deployment does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        if self._client in ("kcat", "java"):
            self.process.send_signal(signal.SIGINT if self._client == "kcat" else signal.SIGTERM)
        self.process.wait(WAIT_SECONDS_MAX)
        self._on_exit()

    def _on_exit(self) -> None:
        self.process.wait(WAIT_SECONDS_MAX)
        for thread in self._threads:
            thread.join(WAIT_SECONDS_MAX)
        self.owned = []

    def _read_events(self, stream: IO[bytes]) -> None:
        for line in stream:
            if line.startswith(b"{"):
                self._on_event(json.loads(line))
            elif self._client == "kcat":
                self._on_kcat(line)

    def _on_event(self, event: dict[str, Any]) -> None:
        if "owns" in event:
            self._set_owned(event["owns"])
        elif "read" in event:
            partition, *offsets = event["read"]
            self.read.setdefault(partition, []).extend(offsets)
        elif event.get("name") == "partitions_assigned":  # Java; with a cooperative assignor only new partitions
            self._set_owned(sorted({*self.owned, *(each["partition"] for each in event["partitions"])}))
        elif event.get("name") == "partitions_revoked":
            revoked = {each["partition"] for each in event["partitions"]}
            self.owned = [partition for partition in self.owned if partition not in revoked]
        elif event.get("name") == "records_consumed":
            for part in event["partitions"]:
                self.read.setdefault(part["partition"], []).extend(range(part["minOffset"], part["maxOffset"] + 1))

    def _on_kcat(self, line: bytes) -> None:
        assigned = KCAT_ASSIGNED.search(line)
        if assigned:
            self._set_owned([int(found) for found in re.findall(rb"\[(\d+)\]", assigned[1])])
        elif b"revoked:" in line:
            self.owned = []
        elif line.startswith(b"@"):
            partition, offset = line[1:].split()
            self.read.setdefault(int(partition), []).append(int(offset))

    def _set_owned(self, partitions: list[int]) -> None:
        self.owned = partitions
        self.assignments += 1


def _command(client: str, bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> list[str]:
    session = session_ms(instance)
    if client == "kcat":
        settings = [
            f"session.timeout.ms={session}",
            f"heartbeat.interval.ms={HEARTBEAT_MS}",
            f"partition.assignment.strategy={assignor}",
            "auto.offset.reset=earliest",
            "auto.commit.interval.ms=100",
            "topic.metadata.refresh.interval.ms=1000",
        ]
        return [
            "kcat",
            "-b",
            bootstrap,
            "-G",
            group,
            "-u",
            "-f",
            r"@%p %o\n",
            *(word for text in settings for word in ("-X", text)),
            topic,
        ]
    if client == "java":
        with tempfile.NamedTemporaryFile("w", suffix=".properties", delete=False) as file:
            file.write(f"heartbeat.interval.ms={HEARTBEAT_MS}\nmetadata.max.age.ms=1000\n")
        return [
            java_command(),
            *TOOL_FLAGS,
            "-Xmx128m",
            f"-Dlog4j2.configurationFile={JAVA_SOURCES / 'log4j2.yaml'}",
            "-cp",
            f"{jar_cache()}/libs/*",
            "org.apache.kafka.tools.VerifiableConsumer",
            "--bootstrap-server",
            bootstrap,
            "--topic",
            topic,
            "--group-id",
            group,
            "--session-timeout",
            str(session),
            "--reset-policy",
            "earliest",
            "--command-config",
            file.name,
            "--assignment-strategy",
            f"org.apache.kafka.clients.consumer.{JAVA_ASSIGNORS[assignor]}",
            *(("--group-instance-id", instance) if instance else ()),
        ]
    if client in programs.PROGRAMS:
        arguments = (bootstrap, group, topic, assignor, str(session), str(HEARTBEAT_MS))
        return [*programs.command(client), "member", *arguments, *([instance] if instance else [])]
    return [
        sys.executable,
        "-m",
        "tests.compat.group_member",
        client,
        bootstrap,
        group,
        topic,
        assignor,
        *([instance] if instance else []),
    ]


class MemberProcesses:
    """The members of one group."""

    def __init__(self, client: str, bootstrap: str, group: str, topic: str, assignor: str, partitions: int) -> None:
        self._arguments = (client, bootstrap, group, topic, assignor)
        self._partitions = partitions
        self.members: dict[str, Member] = {}
        self.stopped: list[Member] = []

    def start(self, *names: str, instances: bool = False) -> None:
        for name in names:
            if name in self.members:
                self.stopped.append(self.members[name])
            self.members[name] = Member(name, *self._arguments, name if instances else None)

    def kill(self, name: str) -> None:
        self.members[name].kill()
        self.stopped.append(self.members.pop(name))

    def leave(self, name: str) -> None:
        self.members[name].leave()
        self.stopped.append(self.members.pop(name))

    def wait_until_assigned(self) -> None:
        """Wait until every partition has one owner and every member owns some."""
        everything = list(range(self._partitions))
        self.wait(
            lambda: (
                sorted(itertools.chain(*(member.owned for member in self.members.values()))) == everything
                and all(member.owned for member in self.members.values())
            ),
            "every member owns partitions",
        )

    def wait_until_read(self, ends: dict[int, int]) -> None:
        self.wait(
            lambda: all(set(range(end)) <= self.offsets(partition) for partition, end in ends.items()),
            f"read up to {ends}",
        )

    def offsets(self, partition: int) -> set[int]:
        return {
            offset for member in (*self.stopped, *self.members.values()) for offset in member.read.get(partition, [])
        }

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while not condition():
            for member in self.members.values():
                if member.process.poll() is not None:
                    raise AssertionError(f"{member.name} ended with {member.process.poll()}: {self._stderr(member)}")
            if time.monotonic() > deadline:
                states = {member.name: (member.owned, self._stderr(member)) for member in self.members.values()}
                raise AssertionError(f"timed out: {what}\n{states}")
            time.sleep(0.01)

    def _stderr(self, member: Member) -> str:
        member.errors.seek(0)
        return member.errors.read()[-2000:].decode(errors="replace")

    def kill_all(self) -> None:
        for member in self.members.values():
            member.process.kill()
            member.process.wait()
