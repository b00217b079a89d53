"""A SPARK_HOME for local sessions without the archive of PySpark.

Spark puts `python/lib/pyspark.zip` on the path of every Python process, and Python compiles modules from an archive on
each import: 0.5 s of CPU for each started stream and each first task. On one machine, the installed PySpark is the
same, and compiled.
"""

import hashlib
import os
from pathlib import Path

PARTS = ("bin", "jars", "sbin", "conf", "licenses", "RELEASE")
"""Linked directories; `python` is omitted."""


def home_without_archive(installed: Path, cache: Path) -> Path:
    """Return a directory with everything of Spark's home except the archive."""
    name = hashlib.sha256(str(installed).encode()).hexdigest()[:12]
    home = cache / f"spark-{name}"
    home.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        link, target = home / part, installed / part
        if target.exists() and not (link.is_symlink() and os.readlink(link) == str(target)):
            fresh = home / f".{part}.{os.getpid()}"
            fresh.symlink_to(target)
            fresh.replace(link)
    return home
