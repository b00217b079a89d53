"""This process as the operating system sees it."""

import os
import resource
import sys
import time

LOG_FILES_MIN, LOG_FILES_MAX = 512, 10_000
OTHER_DESCRIPTORS = 128
"""For what is neither a log's file nor a connection."""
SWITCH_SECONDS = 0.0005
"""After so long a thread that computes makes way for one that waits for the interpreter."""
FREED_BYTES_KEPT = 16 << 20
"""Freed memory that glibc may keep for what comes next."""
MAPPED_BYTES_MIN = 8 << 20
"""Only blocks of this size have pages of their own, which are given back at once."""
TURN_NANOSECONDS = 100_000
"""What the loop wants of a processor at a time; less is not to be had."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call, which Python has no name for."""
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Memory in use; where there is no /proc, the most that was ever in use."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def cpu_seconds() -> float:
    return time.process_time()


def open_descriptors() -> int:
    for path in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(path))
        except FileNotFoundError:
            continue
    return 0


def split_descriptors() -> tuple[int, int]:
    """How many files logs may hold open and how many connections there may be, so that neither takes all descriptors."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return LOG_FILES_MAX, sys.maxsize
    files = min(max(allowed // 4, LOG_FILES_MIN), LOG_FILES_MAX)
    return files, max(allowed - files - OTHER_DESCRIPTORS, allowed // 4)


def raise_descriptor_limit() -> int:
    """Allow this process as many open files as it may have; how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # macOS has a lower limit than it says
            return soft
    return hard


def tune_malloc() -> bool:
    """Let the allocator keep some megabytes that were freed; False where it has no such setting (it is glibc's).

    Else each block of a megabyte is given back and asked for again, and the kernel clears its pages every time: two thirds of the time
    that a batch of a megabyte took. All threads share what is kept: a heap for each worker would hold what large batches took for ever.
    """
    import ctypes

    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    options = ((_M_TRIM_THRESHOLD, FREED_BYTES_KEPT), (_M_MMAP_THRESHOLD, MAPPED_BYTES_MIN), (_M_ARENA_MAX, 1))
    return all(set_option(option, value) for option, value in options)


def shorten_gil_switch_interval() -> None:
    """Let the loop have the interpreter back soon. It lends it each time that it asks the kernel for something, four times a request; and a
    worker that computes, as one that looks into a large compressed batch does, would keep it for 5 ms each time."""
    sys.setswitchinterval(SWITCH_SECONDS)


def request_short_timeslice() -> bool:
    """Let the thread that calls, which is the loop's, have a processor soon after it woke, also where others compute all the time: the
    kernel prefers those who want little at a time. Linux 6.12 and later know this wish; False where it is not known.

    All threads that are started later inherit it: see `reset_timeslice`.
    """
    return _request_timeslice(TURN_NANOSECONDS)


def reset_timeslice() -> bool:
    """For a thread that computes: as the kernel gives them to everybody."""
    return _request_timeslice(0)


def _request_timeslice(nanoseconds: int) -> bool:
    import ctypes
    import platform
    from struct import pack

    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or sys.platform != "linux" or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period
    wish = pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, nanoseconds, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, wish, 0) == 0)


def trim_malloc() -> None:
    """What was freed goes back to the system, also what is kept otherwise. Others wait for the allocator meanwhile, some milliseconds."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
