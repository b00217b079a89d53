"""`subscribePattern`: Java's regular expressions find the same topics as in Java, or are rejected with a hint."""

import re

import pytest

from ottla.spark.java_patterns import PatternError, compile_java_pattern

NAMES = ("zq", "pre-zq", "ZQ", "orders.7", "orders-77", "Orders_x", "a.b.c", "abab", "x", "A1", "_", "..a", "-9")
PATTERNS = (
    "zq", "^zq$", "q$", "orders.*", r"orders\.\d+", "a|z", "(a|b)+", "(?:ab){2}", "(?i)zq", "(?i)ORDERS", "z(?i)q",
    "a(?i)b|ZQ", "(?i:o)rders", "(?i)a(?-i)B|z", "(?s).", "(?u)zq", "((?i)Z)q", r"\p{Digit}", r"\p{Alpha}\p{Digit}",
    r"\P{Alpha}", r"^\p{Lower}+$", r"^\p{Lu}", r"\pL\pN", r"\p{javaUpperCase}", r"\p{IsAlphabetic}$", r"\p{Punct}{2}",
    r"\p{IsDigit}", r"\p{Space}", r"[\p{Upper}&&[^Z]]", "[a-z&&[^q]]$", "[a-c[x-z]]q", "[^a-z]", "(?i)[^a-z]",
    "(?i)[o]r", "[a-z&&o-q&&[^p]]r", r"[\w&&[^\d]]\d", r"[\d.]", "[.]", r"\Qa.b\E", r"\Q.\E+", r"[\Q.-\E]", "[]x]q?",
    r"\Aa", r"c\z", r"c\Z", r"\bb", r"(a)(b)\1\2", r"(?<one>a)b\k<one>", r"(?<=r)ders", "(?<!r)d", "(?=z)z", "(?!z)q$",
    "a++b", "(?>a)b", "o*+r", r"\x61b", r"\u0061", r"\x{61}b", r"[\x61-\u0063]\.", r"\0141", r"\h", r"\v", r"\H",
    "[-9]", "[a-]", "[9-]x?", r"[a\-z]q", r"[^\p{L}]$", "[&]", "[a&b]b", "", "a{2}", "b{1,2}", r"\.\.", "x?", "[^^]",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_finds_the_same_names_as_in_java(spark, pattern):
    java = spark._jvm.java.util.regex.Pattern.compile(pattern)
    expression = compile_java_pattern(pattern)
    assert [name for name in NAMES if expression.search(name)] == [name for name in NAMES if java.matcher(name).find()]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"\p{Foo}", "Java's .p{Foo} is not supported; use a class such as [a-z] or [0-9]"),
        (r"\Ga", "Java's .G is not supported"),
        (r"a\X", "Java's .X is not supported"),
        ("(?x)a", "flag 'x' is not supported"),
        ("[a", "a character class is not closed"),
        ("[z-a]", "z-a is not a range of characters"),
        ("a\\", "it ends with a backslash"),
        (r"\p{Foo", "Java's .p{Foo} is not supported"),
        (r"\x{zz}", "is not a character"),
        ("(", "unterminated subpattern"),
        (")", "unbalanced parenthesis"),
        ("*", "nothing to repeat"),
        (r"\y", "bad escape"),
        (r"\k<no>", "unknown group name"),
        (r"\x6", "incomplete escape"),
        (r"[\x6]", "incomplete escape"),
        (r"[\y]", "bad escape"),
        (r"\09", "needs an octal number"),
    ],
)
def test_invalid_pattern_is_rejected(pattern, message):
    with pytest.raises((PatternError, re.error)) as raised:
        compile_java_pattern(pattern)
    assert re.search(message.replace("[", r"\[").replace("{", r"\{").replace("(", r"\("), str(raised.value))
