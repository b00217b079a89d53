"""`./dev` says clearly what it lacks, before it changes anything."""

import shutil
import subprocess
from pathlib import Path

import pytest

DEV = Path(__file__).parents[3] / "dev"


@pytest.fixture
def checkout(tmp_path):
    """An empty checkout, and a PATH with what a shell needs and no Python."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat", "dirname", "uname"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    shutil.copy(DEV, tmp_path / "dev")
    return tmp_path


def dev(checkout, *words, path=None, **environment):
    command = [str(checkout / "bin" / "bash"), str(checkout / "dev"), *words]
    return subprocess.run(
        command, env={"PATH": path or str(checkout / "bin"), **environment}, capture_output=True, text=True, check=False
    )


def fake(checkout, name, text):
    path = checkout / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{checkout}/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("word", ["setup", "run", "test", "lint", "bench"])
def test_without_python_each_word_says_so(checkout, word):
    done = dev(checkout, word)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("dev: Python 3.11 or newer is needed and none was found")
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_passed_over(checkout):
    fake(checkout, "python3", "exit 1")  # what the check for 3.11 ends with
    assert dev(checkout, "run").stderr.startswith("dev: Python 3.11 or newer is needed")


def test_a_python_without_venv_is_explained(checkout):
    fake(checkout, "python3", 'case "$2" in *ensurepip*) exit 1 ;; esac')
    done = dev(checkout, "run")
    assert done.returncode == 1
    assert "install its venv module" in done.stderr


@pytest.fixture
def other(checkout):
    """Another directory on the PATH, behind the first."""
    (checkout / "other").mkdir()
    return checkout / "other"


def build(path, version, microseconds):
    """Looks like an interpreter of that version, which takes so long for what it is asked to do."""
    path.write_text(f'#!/bin/sh\ncase "$*" in *perf_counter*) echo {microseconds} ;; *print*) echo {version} ;; esac\n')
    path.chmod(0o755)


@pytest.mark.parametrize(("version", "microseconds", "chosen"), [
    ("3.12", 800, "other"),
    ("3.12", 950, "bin"),       # not by much
    ("3.13", 500, "bin"),       # who wants another version says so
])  # fmt: skip
def test_of_several_builds_of_one_version_the_faster_is_taken(checkout, other, version, microseconds, chosen):
    build(checkout / "bin" / "python3", "3.12", 1000)
    build(other / "python3", version, microseconds)
    done = dev(checkout, "python", path=f"{checkout}/bin:{other}")
    assert (done.stdout, done.stderr) == (f"{checkout}/{chosen}/python3\n", "")


def test_the_interpreter_that_is_named_is_taken(checkout, other):
    build(checkout / "bin" / "python3", "3.12", 1000)
    build(other / "python3", "3.12", 5000)
    assert dev(checkout, "python", PYTHON=f"{other}/python3").stdout == f"{other}/python3\n"


def test_an_interpreter_that_is_named_and_cannot_be_used_is_not_passed_over(checkout):
    build(checkout / "bin" / "python3", "3.12", 1000)
    done = dev(checkout, "run", PYTHON="python2.7")
    assert (done.returncode, done.stderr) == (
        1,
        "dev: PYTHON=python2.7 is not a Python 3.11 or newer that can be started.\n",
    )


def test_elsewhere_than_linux_and_macos_it_says_where_ottla_runs(checkout):
    fake(checkout, "uname", "echo MINGW64_NT")
    done = dev(checkout, "run")
    assert (done.returncode, done.stderr) == (
        1, "dev: Ottla runs on Linux (and, untested, on macOS), not on MINGW64_NT. On Windows use WSL 2.\n",
    )  # fmt: skip


def test_an_unknown_word_shows_the_known_ones(checkout):
    done = dev(checkout, "tset")
    assert done.returncode == 1
    assert "./dev test [ARGS]" in done.stderr
    assert done.stderr.endswith("dev: unknown word: tset\n")


def test_without_a_word_it_helps(checkout):
    done = dev(checkout)
    assert done.returncode == 0
    assert done.stdout.startswith("./dev run [ARGS]")
