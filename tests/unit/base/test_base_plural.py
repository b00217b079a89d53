import pytest

from ottla.base.plural import count_text


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "record", "0 records"),
        (1, "record", "1 record"),
        (1_000, "batch", "1,000 batches"),
        (2, "directory", "2 directories"),
        (3, "day", "3 days"),
    ],
)
def test_counts_and_nouns_agree(count: int, noun: str, text: str) -> None:
    assert count_text(count, noun) == text
