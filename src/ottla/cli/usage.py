"""Usage of typer commands: their help pages, and usage errors in the words of this command line.

typer's own messages come from the libraries that it uses, and change with their versions.
"""

import re
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from ottla.cli.errors import nearest
from ottla.cli.examples import EXAMPLES
from ottla.cli.help import HelpPage

USAGE_ERROR_TYPE = cast(type[Exception], typer.BadParameter.__mro__[2])
"""Base class of typer's usage errors. Some versions of typer vendor click, others import it."""

HELP_ROW = ("-h, --help", "Show this page.")
_CONVERSIONS = {
    "int_parsing": "is not a whole number",
    "int_parsing_size": "is too large",
    "int_from_float": "is not a whole number",
    "float_parsing": "is not a number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
"""Texts for pydantic's error types, which typer uses since 0.26."""
_MESSAGES = (
    (r"No such option: (\S+).*", r"no option \1"),
    (r"No such command '(.*?)'\..*", r"no command '\1'"),
    (r"Option '(.*)' does not take a value\.", r"\1 does not take a value"),
    (r"Option '(.*)' requires an argument\.", r"\1 needs a value"),
    (r"Option '(.*)' requires \d+ arguments\.", r"\1 needs more values"),
    (r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", r"unexpected argument: \1"),
)


class HelpCommand(TyperCommand):
    """A command with a help page of ours."""

    def get_help(self, ctx: Any) -> str:
        return command_page(self, ctx.command_path).render()


class HelpGroup(TyperGroup):
    """A group of commands with a help page of ours."""

    def get_help(self, ctx: Any) -> str:
        rows = [(name, _first_sentence(each.help or "")) for name, each in self.commands.items()]
        path = ctx.command_path
        name = path.partition(" ")[2]
        examples = "\n".join(EXAMPLES.get(f"{name} {each}", "").partition("\n")[0] for each in self.commands)
        sections = [("Commands", rows), ("Options", [HELP_ROW])]
        return HelpPage(f"{path} COMMAND [OPTIONS]", self.help or "", sections, examples.strip()).render()


def new_group(help_: str) -> typer.Typer:
    """Return an app for a group of commands."""
    return typer.Typer(cls=HelpGroup, no_args_is_help=True, help=help_)


def command_page(command: Any, path: str) -> HelpPage:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join([path, *(argument_usage(each) for each in arguments), "[OPTIONS]"])
    panels: dict[str, list[Any]] = {"Options": []}
    for each in command.params:
        if each.param_type_name == "option" and not getattr(each, "hidden", False):
            panels.setdefault(getattr(each, "rich_help_panel", None) or "Options", []).append(each)
    sections = [("Arguments", [(argument_usage(each), _text(each)) for each in arguments])]
    sections += [(title, [(_names(each), _text(each)) for each in options]) for title, options in panels.items()]
    sections[1][1].append(HELP_ROW)
    examples = EXAMPLES.get(path.partition(" ")[2], "")
    return HelpPage(usage, command.help or "", sections, examples)


def argument_usage(argument: Any) -> str:
    """Return an argument as in a usage line: TOPIC, TOPIC..., [FILE]."""
    name = (argument.metavar or argument.name).removesuffix("...")
    shown = f"{name}..." if argument.nargs == -1 else name
    return shown if argument.required else f"[{shown}]"


def default_text(parameter: Any) -> str:
    """Return the default of an option for people; empty if there is none to mention."""
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    if parameter.required or getattr(parameter, "is_flag", False) or parameter.default in (None, False, "", [], ()):
        return ""
    return str(parameter.default)


def describe_usage_error(error: Any) -> tuple[str, str]:
    """Return the message of a usage error, and a suggestion or an empty string."""
    parameter = getattr(error, "param", None)
    if type(error).__name__ == "MissingParameter" and parameter is not None:
        return f"missing {_parameter_name(parameter)}", ""
    message = str(error.format_message()) if parameter is None else str(error.message)
    if parameter is not None:
        return f"{_parameter_name(parameter)}: {_conversion_message(error, message, parameter)}", ""
    message = message.removeprefix("Invalid value: ")
    for pattern, replacement in _MESSAGES:
        if re.fullmatch(pattern, message, re.DOTALL):
            message = re.sub(pattern, replacement, message, flags=re.DOTALL)
            break
    return message, _suggestion(error, message)


def _conversion_message(error: Any, message: str, parameter: Any) -> str:
    """Return a message for a value that cannot be converted to the type of its parameter."""
    causes = getattr(error.__cause__, "errors", None)
    found = causes()[0] if causes is not None else None
    if found is None:
        return message[:1].lower() + message[1:].rstrip(".") if not message.startswith("'") else message.rstrip(".")
    choices = getattr(getattr(parameter, "type_descriptor", None), "choices", None)
    if choices:
        names = ", ".join(str(each) for each in choices)
        return f"{found['input']!r} is not one of {names}"
    text = _CONVERSIONS.get(found["type"], "is not valid").format(**found.get("ctx", {}))
    value = _shown_value(found["input"])
    return f"{text}, got {value.strip(chr(39))}" if text.startswith("must") else f"{value} {text}"


def _shown_value(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _suggestion(error: Any, message: str) -> str:
    command = getattr(getattr(error, "ctx", None), "command", None)
    wanted = message.rpartition(" ")[2]
    if message.startswith("no command "):
        meant = nearest(wanted.strip("'"), getattr(command, "commands", ()))
    elif message.startswith("no option "):
        meant = nearest(wanted, [name for each in getattr(command, "params", ()) for name in each.opts])
    else:
        return ""
    return f"Did you mean {meant}?" if meant else ""


def _parameter_name(parameter: Any) -> str:
    return argument_usage(parameter).strip("[]") if parameter.param_type_name == "argument" else str(parameter.opts[0])


def _names(option: Any) -> str:
    """Return `-p, --partitions N`."""
    names = sorted([*option.opts, *option.secondary_opts], key=lambda each: each.startswith("--"))
    metavar = "" if getattr(option, "is_flag", False) else f" {option.metavar or 'TEXT'}"
    return ", ".join(names) + metavar


def _text(parameter: Any) -> str:
    parts = [parameter.help or ""]
    variable = getattr(parameter, "envvar", None)
    if variable:
        parts.append(f"[variable: {variable}]")
    if default := default_text(parameter):
        parts.append(f"[default: {default}]")
    return " ".join(parts)


def _first_sentence(text: str) -> str:
    first = text.partition("\n\n")[0]
    return " ".join(first.split()).partition(". ")[0].rstrip(".") + "."
