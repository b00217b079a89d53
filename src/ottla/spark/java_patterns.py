"""Translation of Java's regular expressions, which Spark's connector accepts for topics, to Python's.

Topic names consist of few characters, so a character class is evaluated to the set of these characters that it matches.
This covers Java's unions, intersections and properties without counterparts in Python.
"""

import re
import string
from typing import NamedTuple

TOPIC_CHARACTERS = string.ascii_letters + string.digits + "._-"
_PUNCTUATION = "._-"
PROPERTIES = {
    "lower": string.ascii_lowercase, "upper": string.ascii_uppercase, "alpha": string.ascii_letters,
    "digit": string.digits, "alnum": string.ascii_letters + string.digits, "xdigit": string.hexdigits,
    "punct": _PUNCTUATION, "graph": TOPIC_CHARACTERS, "print": TOPIC_CHARACTERS, "ascii": TOPIC_CHARACTERS,
    "blank": "", "cntrl": "", "space": "", "whitespace": "", "control": "", "white_space": "",
    "l": string.ascii_letters, "lu": string.ascii_uppercase, "ll": string.ascii_lowercase, "n": string.digits,
    "nd": string.digits, "p": _PUNCTUATION, "pc": "_", "pd": "-", "po": ".", "s": "", "z": "", "c": "",
    "alphabetic": string.ascii_letters, "letter": string.ascii_letters, "lowercase": string.ascii_lowercase,
    "uppercase": string.ascii_uppercase, "punctuation": _PUNCTUATION, "latin": string.ascii_letters,
    "letterordigit": string.ascii_letters + string.digits, "hex_digit": string.hexdigits,
}  # fmt: skip
"""Topic characters by the name of a property, in lower case and without its prefix `Is` or `java`."""
_ESCAPED_CLASSES = "dDsSwW"
_UNSUPPORTED = {"G": "end of the previous match", "R": "line break", "X": "grapheme", "N": "character name", "c": ""}
_ESCAPED_SPACES = {"h": "[ \\t]", "H": "[^ \\t]", "v": "[\\n\\r\\f]", "V": "[^\\n\\r\\f]", "e": "\\x1b"}


class PatternError(ValueError):
    """A pattern that cannot be translated. The message says what to use instead."""


def compile_java_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a Java pattern for topic names. Raises PatternError or `re.error`."""
    return re.compile(_Translator(pattern).translate(), re.ASCII)


class _Group(NamedTuple):
    """State at the start of a group, restored at its end."""

    flags: tuple[str, ...]
    ignore_case: bool


class _Translator:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags: tuple[str, ...] = ()
        """Flags set within the current group. Python needs a group of its own for each."""
        self._ignore_case = False
        self._groups: list[_Group] = []

    def translate(self) -> str:
        pieces = []
        while self._at < len(self._pattern):
            pieces.append(self._piece())
        return "".join(pieces) + ")" * len(self._flags)

    def _starts_with(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _take(self, count: int = 1) -> str:
        taken = self._pattern[self._at : self._at + count]
        self._at += count
        return taken

    def _piece(self) -> str:
        if self._starts_with("\\"):
            return self._escape()
        if self._starts_with("["):
            return self._set_text(self._character_class())
        if self._starts_with("("):
            return self._group_start()
        character = self._take()
        if character == ")" and self._groups:
            closed = ")" * len(self._flags) + ")"
            self._flags, self._ignore_case = self._groups.pop()
            return closed
        if character == "|":
            return ")" * len(self._flags) + "|" + "".join(self._flags)
        return character

    def _group_start(self) -> str:
        flags = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])").match(self._pattern, self._at)
        if flags is None:
            self._take()
            self._groups.append(_Group(self._flags, self._ignore_case))
            self._flags = ()
            if self._starts_with("?<") and not self._starts_with("?<=") and not self._starts_with("?<!"):
                self._take(2)
                return "(?P<"
            return "("
        self._take(len(flags[0]))
        if flags[3] == ":":
            self._groups.append(_Group(self._flags, self._ignore_case))
            self._flags = ()
        on, off = self._checked_flags(flags[1]), self._checked_flags(flags[2] or "")
        self._ignore_case = ("i" in on or self._ignore_case) and "i" not in off
        opening = f"(?{on}{'-' if off else ''}{off}:"
        if flags[3] == ")":
            self._flags += (opening,)
        return opening

    def _checked_flags(self, flags: str) -> str:
        for flag in flags:
            if flag not in "idmsuU":
                raise PatternError(f"flag {flag!r} is not supported; only i, m and s have an effect on topic names")
        return "".join(dict.fromkeys(flag for flag in flags if flag in "ims"))

    def _escape(self) -> str:
        """Translate an escape outside of character classes."""
        if self._starts_with("\\k<"):
            self._take(3)
            name, _, _ = self._pattern[self._at :].partition(">")
            self._take(len(name) + 1)
            return f"(?P={name})"
        if self._starts_with("\\z") or self._starts_with("\\Z"):
            self._take(2)
            return r"\Z"
        if self._starts_with("\\Q"):
            return re.escape(self._quotation())
        if self._starts_with("\\p") or self._starts_with("\\P"):
            return self._set_text(self._property())
        return self._simple_escape()

    def _simple_escape(self) -> str:
        escape = self._take(2)
        letter = escape[1:]
        if not letter:
            raise PatternError("it ends with a backslash")
        if letter in _UNSUPPORTED:
            raise PatternError(f"Java's {escape} is not supported; topic names have only letters, digits and '._-'")
        if letter == "x" and self._starts_with("{"):
            return self._code_point()
        if letter == "0":
            found = re.compile("[0-3]?[0-7]{1,2}").match(self._pattern, self._at)
            if found is None:
                raise PatternError("\\0 needs an octal number")
            return re.escape(chr(int(self._take(len(found[0])), 8)))
        if letter in "xu":
            return escape + self._take(2 if letter == "x" else 4)
        return _ESCAPED_SPACES.get(letter, escape)

    def _code_point(self) -> str:
        digits, closing, _ = self._pattern[self._at + 1 :].partition("}")
        self._take(len(digits) + 2)
        try:
            return re.escape(chr(int(digits, 16)))
        except (ValueError, OverflowError):
            raise PatternError(f"\\x{{{digits}{closing} is not a character") from None

    def _quotation(self) -> str:
        self._take(2)
        quoted, ending, _ = self._pattern[self._at :].partition("\\E")
        self._take(len(quoted) + len(ending))
        return quoted

    def _property(self) -> frozenset[str]:
        escape = self._take(2)
        name = self._take()
        if name == "{":
            name, _, _ = self._pattern[self._at :].partition("}")
            self._take(len(name) + 1)
        plain = re.sub(r"^(Is|java|(script|sc|general_category|gc)=)", "", name).lower()
        found = PROPERTIES.get(plain)
        if found is None:
            raise PatternError(f"Java's {escape}{{{name}}} is not supported; use a class such as [a-z] or [0-9]")
        return frozenset(found) if escape == "\\p" else frozenset(TOPIC_CHARACTERS) - frozenset(found)

    def _set_text(self, characters: frozenset[str]) -> str:
        return "[" + "".join(re.escape(each) for each in sorted(characters)) + "]" if characters else "(?!)"

    # Character classes

    def _character_class(self) -> frozenset[str]:
        """Return the topic characters that a class matches, from its opening bracket on."""
        self._take()
        is_negated = self._starts_with("^")
        if is_negated:
            self._take()
        result: frozenset[str] | None = None
        found: set[str] = set()
        is_first = True
        while is_first or not self._starts_with("]"):
            if self._at >= len(self._pattern):
                raise PatternError("a character class is not closed")
            if self._starts_with("&&"):
                self._take(2)
                result = frozenset(found) if result is None else result & found
                found = set()
                continue
            found |= self._class_item()
            is_first = False
        self._take()
        result = frozenset(found) if result is None else result & found
        if self._ignore_case:
            result = frozenset(each for each in TOPIC_CHARACTERS if {each.lower(), each.upper()} & result)
        return frozenset(TOPIC_CHARACTERS) - result if is_negated else result

    def _class_item(self) -> frozenset[str]:
        if self._starts_with("["):
            return self._character_class()
        if self._starts_with("\\Q"):
            return frozenset(self._quotation())
        if self._starts_with("\\p") or self._starts_with("\\P"):
            return self._property()
        first = self._class_character()
        if len(first) == 2:
            return frozenset(each for each in TOPIC_CHARACTERS if re.fullmatch(first, each, re.ASCII))
        rest = self._pattern[self._at + 1 : self._at + 2]
        if self._starts_with("-") and rest not in ("]", "[", ""):
            self._take()
            last = self._class_character()
            if len(last) != 1 or last < first:
                raise PatternError(f"{first}-{last} is not a range of characters")
            return frozenset(each for each in TOPIC_CHARACTERS if first <= each <= last)
        return frozenset(first)

    def _class_character(self) -> str:
        """Return one character, or an escaped class such as `\\d`."""
        if not self._starts_with("\\"):
            return self._take()
        if self._pattern[self._at + 1 : self._at + 2] in tuple(_ESCAPED_CLASSES):
            return self._take(2)
        escape = self._simple_escape()
        if escape in _ESCAPED_SPACES.values():
            return " " if "^" not in escape else "\\S"
        single = [each for each in map(chr, range(128)) if re.fullmatch(escape, each, re.ASCII)]
        return single[0] if single else "\x7f"  # matches no topic
