"""Writes docs/CONFIGS.md: every config, what may be given, and whether it does something here. `--check` only compares."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ottla.metadata.configs import BROKER_CONFIGS, CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, Definition
from ottla.metadata.configs.documentation import config_documentation
from ottla.metadata.configs.support import (
    INAPPLICABLE_CONFIGS,
    PARTIAL_SUPPORT,
    SUPPORTED_BROKER_CONFIGS,
    SUPPORTED_TOPIC_CONFIGS,
)
from ottla.metadata.configs.values import describe_allowed

TARGET = Path(__file__).resolve().parent.parent / "docs" / "CONFIGS.md"
UPDATES = {"static": "at start", "broker": "per broker", "cluster": "cluster-wide"}
INTRODUCTION = """\
# Configs

Every config that Apache Kafka 4.3 knows. All are checked, kept and described as Kafka does. The column *effect* says which do something
in Ottla today: **yes**, *not yet*, or *never*, where they steer threads, buffers or plug-ins of a Java process.

This page is generated: `python tools/document_configs.py` writes it.
"""


def is_own(definition: Definition) -> bool:
    return definition.name.startswith("ottla.")


OWN_CONFIGS = [definition for definition in BROKER_CONFIGS.values() if is_own(definition)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if the page is not what would be written")
    text = page()
    if parser.parse_args().check:
        is_current = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        if not is_current:
            print(f"{TARGET} is out of date: run python tools/document_configs.py", file=sys.stderr)
        return 0 if is_current else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


def page() -> str:
    return "\n".join(
        (
            INTRODUCTION,
            *section("Topics", "A topic's own configs.", TOPIC_CONFIGS.values(), _topic_effect),
            *section(
                "Brokers",
                "In the properties file or by `--set`.",
                BROKER_CONFIGS.values(),
                _broker_effect,
                with_update=True,
            ),
            *section(
                "Ottla's own",
                "Configs that Kafka does not have, in the properties file or by `--set`.",
                OWN_CONFIGS,
                _broker_effect,
            ),
            *section("Groups", "A group's own configs.", GROUP_CONFIGS.values(), lambda name: "not yet"),
            *section(
                "Client metrics", "A subscription's configs.", CLIENT_METRICS_CONFIGS.values(), lambda name: "not yet"
            ),
        )
    )


def section(
    title: str,
    about: str,
    definitions: Iterable[Definition],
    effect: Callable[[str], str],
    *,
    with_update: bool = False,
) -> list[str]:
    columns = ["config", "type", "default", "allowed", *(["changes"] if with_update else []), "effect", "what it does"]
    lines = [f"## {title}", about, "", _row(columns), _row(["---"] * len(columns))]
    for definition in sorted(definitions):
        if is_own(definition) and with_update:  # they have a section of their own
            continue
        if definition.internal and not definition.dynamic and not is_own(definition):
            continue
        update = [UPDATES[definition.update]] if with_update else []
        lines.append(
            _row([f"`{definition.name}`", definition.type.name.lower(), _default(definition), _allowed(definition), *update,
                  effect(definition.name), config_documentation(definition)])
        )  # fmt: skip
    return [*lines, ""]


def _topic_effect(name: str) -> str:
    return PARTIAL_SUPPORT.get(name) or ("**yes**" if name in SUPPORTED_TOPIC_CONFIGS else "not yet")


def _broker_effect(name: str) -> str:
    if name in PARTIAL_SUPPORT:
        return PARTIAL_SUPPORT[name]
    if name in SUPPORTED_BROKER_CONFIGS:
        return "**yes**"
    return "never" if name in INAPPLICABLE_CONFIGS else "not yet"


def _default(definition: Definition) -> str:
    if definition.required:
        return "must be given"
    return "none" if definition.default is None else "empty" if not definition.default else f"`{definition.default}`"


def _allowed(definition: Definition) -> str:
    """The type has a column of its own, so that the range is enough."""
    return re.sub("a [0-9]+-bit integer(, )?|a number(, )?", "", describe_allowed(definition)) or "any"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
