"""`./dev` reports what is missing before it changes anything."""

import shutil
import subprocess
from pathlib import Path

import pytest

DEV = Path(__file__).parents[3] / "dev"


@pytest.fixture
def checkout(tmp_path):
    """Return an empty checkout whose PATH has the tools of a shell and no Python."""
    (tmp_path / "bin").mkdir()
    for name in ("bash", "cat", "dirname", "uname"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    shutil.copy(DEV, tmp_path / "dev")
    return tmp_path


def dev(checkout, *arguments, path=None, **environment):
    command = [str(checkout / "bin" / "bash"), str(checkout / "dev"), *arguments]
    return subprocess.run(
        command, env={"PATH": path or str(checkout / "bin"), **environment}, capture_output=True, text=True, check=False
    )


def fake(checkout, name, text):
    path = checkout / "bin" / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{checkout}/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("command", ["setup", "run", "test", "lint", "bench"])
def test_every_command_fails_clearly_without_python(checkout, command):
    done = dev(checkout, command)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("dev: Python 3.11 or newer not found")
    assert not (checkout / ".venv").exists()


def test_old_python_is_skipped(checkout):
    fake(checkout, "python3", "exit 1")  # how the check for 3.11 fails
    assert dev(checkout, "run").stderr.startswith("dev: Python 3.11 or newer not found")


def test_python_without_venv_module_is_explained(checkout):
    fake(checkout, "python3", 'case "$2" in *ensurepip*) exit 1 ;; esac')
    done = dev(checkout, "run")
    assert done.returncode == 1
    assert "has no venv module" in done.stderr


def build(path, version):
    """Create a fake interpreter that reports `version` and passes every check."""
    path.write_text(f'#!/bin/sh\ncase "$*" in *print*) echo {version} ;; esac\n')
    path.chmod(0o755)


def test_python_first_supported_version_is_chosen(checkout):
    fake(checkout, "python3", "exit 1")  # older than 3.11
    build(checkout / "bin" / "python3.12", "3.12")
    build(checkout / "bin" / "python3.11", "3.11")
    done = dev(checkout, "python")
    assert (done.stdout, done.stderr) == (f"{checkout}/bin/python3.12\n", "")


def test_python_named_by_the_environment_is_chosen(checkout):
    build(checkout / "bin" / "python3", "3.12")
    (checkout / "other").mkdir()
    build(checkout / "other" / "python3", "3.12")
    assert dev(checkout, "python", PYTHON=f"{checkout}/other/python3").stdout == f"{checkout}/other/python3\n"


def test_python_named_by_the_environment_must_be_usable(checkout):
    build(checkout / "bin" / "python3", "3.12")
    done = dev(checkout, "run", PYTHON="python2.7")
    assert (done.returncode, done.stderr) == (
        1,
        "dev: PYTHON=python2.7 cannot be started or is older than Python 3.11.\n",
    )


def test_unsupported_platform_is_rejected(checkout):
    fake(checkout, "uname", "echo MINGW64_NT")
    done = dev(checkout, "run")
    assert (done.returncode, done.stderr) == (
        1, "dev: Ottla runs on Linux (macOS should work but is untested), not on MINGW64_NT. On Windows use WSL 2.\n",
    )  # fmt: skip


def test_unknown_command_prints_the_usage(checkout):
    done = dev(checkout, "tset")
    assert done.returncode == 1
    assert "./dev test [ARGS]" in done.stderr
    assert done.stderr.endswith("dev: unknown command: tset\n")


def test_no_command_prints_the_usage(checkout):
    done = dev(checkout)
    assert done.returncode == 0
    assert done.stdout.startswith("./dev run [ARGS]")
