"""Resource usage, limits and scheduling of this process."""

import os
import resource
import sys
import time

LOG_FILES_MIN, LOG_FILES_MAX = 512, 10_000
OTHER_DESCRIPTORS = 128
"""Descriptors that are neither log files nor connections."""
GIL_SWITCH_SECONDS = 0.0005
"""Time after which a computing thread hands the GIL to a waiting one."""
TRIM_THRESHOLD_BYTES = 16 << 20
"""Freed memory that glibc may keep for new allocations."""
MMAP_THRESHOLD_BYTES = 8 << 20
"""Blocks from this size on are mapped, and unmapped when freed."""
TIMESLICE_NANOSECONDS = 100_000
"""Scheduler slice of the loop's thread. It is the kernel's minimum."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""System call numbers of sched_setattr, which Python does not provide."""
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Return the resident memory, or its peak on systems without /proc."""
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
    """Return the limits of open log files and of connections, so that neither takes all descriptors."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if allowed == resource.RLIM_INFINITY:
        return LOG_FILES_MAX, sys.maxsize
    files = min(max(allowed // 4, LOG_FILES_MIN), LOG_FILES_MAX)
    return files, max(allowed - files - OTHER_DESCRIPTORS, allowed // 4)


def raise_descriptor_limit() -> int:
    """Raise the limit of open files to the hard limit and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):  # macOS reports a higher limit than it allows
            return soft
    return hard


def tune_malloc() -> bool:
    """Let glibc keep some freed memory, in one arena for all threads. Returns False with other allocators.

    By default each block of 1 MB is returned and allocated again, and the kernel clears its pages every time: two
    thirds of the time for a batch of 1 MB. With an arena per worker, each would keep the memory of the largest batches
    that it handled.
    """
    import ctypes

    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    options = ((_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES), (_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES), (_M_ARENA_MAX, 1))
    return all(set_option(option, value) for option, value in options)


def shorten_gil_switch_interval() -> None:
    """Let the loop get the GIL back sooner. It releases the GIL in every system call, four per request, and a computing
    worker, such as one that validates a large compressed batch, would keep it for 5 ms each time."""
    sys.setswitchinterval(GIL_SWITCH_SECONDS)


def request_short_timeslice() -> bool:
    """Request a 0.1 ms scheduler slice for the calling (event-loop) thread, so the kernel runs it soon after wake-up
    even on a busy CPU.

    Needs Linux 6.12; returns False if unsupported. Threads that are started later inherit it: see `reset_timeslice`.
    """
    return _request_timeslice(TIMESLICE_NANOSECONDS)


def reset_timeslice() -> bool:
    """Reset the calling thread, one that computes, to the kernel's default slice."""
    return _request_timeslice(0)


def _request_timeslice(nanoseconds: int) -> bool:
    import ctypes
    import platform
    from struct import pack

    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or sys.platform != "linux" or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period
    attributes = pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, nanoseconds, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)


def trim_malloc() -> None:
    """Return all freed memory to the system. Other threads wait for the allocator meanwhile, for some milliseconds."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
