"""Properties files are parsed as Java does."""

import pytest

from ottla.node.properties import PropertiesError, Property, decode_properties, read_properties

CASES = [
    ("a=1", {"a": "1"}),
    ("a = 1 ", {"a": "1 "}),
    ("a:1\nb 2\nc\t=\t3\nd  :  4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
    ("a==1", {"a": "=1"}),
    ("a= =1", {"a": "=1"}),
    ("a b=c", {"a": "b=c"}),
    ("a", {"a": ""}),
    ("a=", {"a": ""}),
    ("=1", {"": "1"}),
    ("# comment\n! another\n  # indented\n\n \t\n a=1", {"a": "1"}),
    ("# comment \\\na=1", {"a": "1"}),
    ("a=1#2", {"a": "1#2"}),
    ("a=1\\\n   2\\\n\t3", {"a": "123"}),
    ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
    ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
    ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    ("a=1\\\\\\\n2", {"a": "1\\2"}),
    ("a=1\\", {"a": "1"}),
    ("a\\=b=c\na\\:b=d\na\\ b=e", {"a=b": "c", "a:b": "d", "a b": "e"}),
    ("a=\\t\\n\\r\\f\\x\\\\", {"a": "\t\n\r\fx\\"}),
    ("a=\\u0041\\u00e9\\uD83D\\uDE00", {"a": "Aé😀"}),
    ("\\u0061=1", {"a": "1"}),
    ("a=\\  b", {"a": "  b"}),
    ("a=1\r\nb=2\rc=3\n", {"a": "1", "b": "2", "c": "3"}),
    ("a=1\na=2", {"a": "2"}),
    ("listeners=PLAINTEXT://:9092,CONTROLLER://:9093", {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}),
    ("", {}),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_read_properties(text: str, expected: dict[str, str]) -> None:
    assert {found.key: found.value for found in read_properties(text)} == expected


def test_property_has_its_line_number() -> None:
    assert read_properties("# one\na=1\\\n2\n\nb=3") == [Property("a", "12", 2), Property("b", "3", 5)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "\\uzzzz=1", "a=\\u"])
def test_invalid_escape_is_reported_with_its_line(text: str) -> None:
    with pytest.raises(PropertiesError, match=r"line 2: .* four hexadecimal digits"):
        read_properties("x=y\n" + text)


def test_files_are_decoded_as_utf_8_or_latin_1() -> None:
    assert decode_properties("a=é".encode()) == "a=é"
    assert decode_properties("a=é".encode("latin-1")) == "a=é"
    assert decode_properties(b"\xef\xbb\xbfa=1") == "a=1"
