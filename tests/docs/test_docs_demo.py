"""`ottla demo` is run for real: its broker, its processes, and a consumer that is killed."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from ottla.cli.demo_view import ChangeLog, GroupSnapshot, Partition

DEMO = [sys.executable, "-m", "ottla", "demo"]


def moment(owners: str, *, state: str = "Stable", at_s: float = 0.0) -> GroupSnapshot:
    """A letter for each partition says whose it is; a dot is nobody."""
    names = {letter: letter for letter in owners if letter != "."}
    members = {name: tuple(number for number, owner in enumerate(owners) if owner == name) for name in sorted(names)}
    partitions = tuple(Partition(number, 10, 8, names.get(owner)) for number, owner in enumerate(owners))
    return GroupSnapshot(at_s, state, members, partitions)


def test_chronicle_tells_what_changed_between_settled_moments() -> None:
    chronicle = ChangeLog()
    unsettled = (moment("aa..", state="PreparingRebalance"), moment("aa.."))
    told = [
        chronicle.follow(each) for each in (moment("aabb"), moment("aabb"), *unsettled, moment("aaaa"), moment("aaca"))
    ]
    assert told == [
        ["a joined the group", "b joined the group"],
        [],
        [],
        [],
        ["b is no longer in the group", "partitions 2, 3 moved from b to a"],
        ["c joined the group", "partition 2 moved from a to c"],
    ]
    assert chronicle.moved == 3


def test_moment_adds_up() -> None:
    seen = moment("aab")
    assert (seen.produced, seen.handled, seen.lag, seen.lag_of("a"), seen.lag_of("b")) == (30, 24, 6, 4, 2)


@pytest.mark.timeout(90)
def test_a_consumer_dies_and_its_partitions_move() -> None:
    done = subprocess.run([*DEMO, "--seconds", "5"], capture_output=True, text=True, timeout=80, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    victim = re.search(r"\* kill -9 \d+: (\w+) dies without a word\n", done.stdout)
    assert victim, done.stdout
    after = done.stdout[victim.end() :]
    assert f"* {victim[1]} is no longer in the group\n" in after
    assert re.search(rf"\* partitions? [\d, ]+ moved from {victim[1]} to \w+\n", after), after
    numbers = re.search(r"([\d,]+) orders were produced and ([\d,]+) handled, each at least once; 0 are left", after)
    assert numbers, after
    assert numbers[1] == numbers[2] != "0"
    assert "One consumer was killed; partitions changed hands" in after
    assert "ottla start --ephemeral" in after


@pytest.mark.timeout(90)
def test_on_a_terminal_it_draws_and_ends_cleanly_with_ctrl_c() -> None:
    """The keyboard's Ctrl-C goes to everybody on the terminal; the demo ends them all, in order, with a summary and without complaint."""
    process, terminal = pty.fork()
    if not process:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "130", "LINES": "40"}
        os.execv(DEMO[0], [*DEMO, "--seconds", "0"])
    seen, has_asked, give_up_at = b"", False, time.monotonic() + 60
    try:
        while time.monotonic() < give_up_at:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # nobody is on the other side
                break
            if b"cleo joined the group" in seen and not has_asked:
                os.write(terminal, b"\x03")
                has_asked = True
    finally:
        if time.monotonic() >= give_up_at:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert os.waitstatus_to_exitcode(status) == 0, text
    assert "partitions of orders" in text
    assert "members of the group" in text
    assert "orders were produced and" in text
    assert "killed" not in text
    assert "Traceback" not in text
