"""Numbers with their nouns, in messages for people."""


def count_text(count: int, noun: str) -> str:
    """Return `1 record`, `2 records`, `1,000 batches`, `3 directories`."""
    if count == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}{'es' if noun.endswith('ch') else 's'}"
    return f"{count:,} {plural}"
