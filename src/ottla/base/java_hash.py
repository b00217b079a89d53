"""Java's hash of strings, which decides where brokers of either kind look for what they know of a key."""


def string_hash(text: str) -> int:
    """As 32 unsigned bits. Java counts in UTF-16."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(encoded), 2):
        value = (31 * value + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFF_FFFF
    return value


def partition_of(key: str, partition_count: int) -> int:
    """The partition of an internal topic that holds what is known of a key: by the absolute value of the hash as a signed number."""
    value = string_hash(key)
    if value > 0x8000_0000:
        value = 0x1_0000_0000 - value
    elif value == 0x8000_0000:  # has no positive counterpart in 32 bits
        value = 0
    return value % partition_count
