"""`ottla demo` with its real broker and consumer processes."""

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


def snapshot(owners: str, *, state: str = "Stable", at_s: float = 0.0) -> GroupSnapshot:
    """Build a snapshot from one letter per partition, its owner; a dot means no owner."""
    names = {letter: letter for letter in owners if letter != "."}
    members = {name: tuple(number for number, owner in enumerate(owners) if owner == name) for name in sorted(names)}
    partitions = tuple(Partition(number, 10, 8, names.get(owner)) for number, owner in enumerate(owners))
    return GroupSnapshot(at_s, state, members, partitions)


def test_change_log_describes_changes_between_stable_snapshots() -> None:
    change_log = ChangeLog()
    unstable = (snapshot("aa..", state="PreparingRebalance"), snapshot("aa.."))
    changes = [
        change_log.update(each)
        for each in (snapshot("aabb"), snapshot("aabb"), *unstable, snapshot("aaaa"), snapshot("aaca"))
    ]
    assert changes == [
        ["a joined the group", "b joined the group"],
        [],
        [],
        [],
        ["b is no longer in the group", "partitions 2, 3 moved from b to a"],
        ["c joined the group", "partition 2 moved from a to c"],
    ]
    assert change_log.moved == 3


def test_snapshot_totals() -> None:
    totals = snapshot("aab")
    assert (totals.produced, totals.processed, totals.lag, totals.lag_of("a"), totals.lag_of("b")) == (30, 24, 6, 4, 2)


@pytest.mark.timeout(90)
def test_partitions_of_a_killed_consumer_move() -> None:
    done = subprocess.run([*DEMO, "--seconds", "5"], capture_output=True, text=True, timeout=80, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    victim = re.search(r"\* kill -9 \d+: killed (\w+)\n", done.stdout)
    assert victim, done.stdout
    after = done.stdout[victim.end() :]
    assert f"* {victim[1]} is no longer in the group\n" in after
    assert re.search(rf"\* partitions? [\d, ]+ moved from {victim[1]} to \w+\n", after), after
    numbers = re.search(r"([\d,]+) orders produced, ([\d,]+) processed at least once, 0 left", after)
    assert numbers, after
    assert numbers[1] == numbers[2] != "0"
    assert "One consumer was killed; partitions were reassigned" in after
    assert "ottla start --ephemeral" in after


@pytest.mark.timeout(90)
def test_ctrl_c_ends_the_live_view_cleanly() -> None:
    """Ctrl-C on a terminal: the demo stops its processes in order and prints a summary, without errors."""
    process, terminal = pty.fork()
    if not process:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": "130", "LINES": "40"}
        os.execv(DEMO[0], [*DEMO, "--seconds", "0"])
    output, is_interrupted, give_up_at = b"", False, time.monotonic() + 60
    try:
        while time.monotonic() < give_up_at:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                output += os.read(terminal, 65536)
            except OSError:  # the process has exited
                break
            if b"cleo joined the group" in output and not is_interrupted:
                os.write(terminal, b"\x03")
                is_interrupted = True
    finally:
        if time.monotonic() >= give_up_at:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        os.close(terminal)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode())
    assert os.waitstatus_to_exitcode(status) == 0, text
    assert "partitions of orders" in text
    assert "members of the group" in text
    assert "orders produced, " in text
    assert "killed" not in text
    assert "Traceback" not in text
