"""The kernel's randomness. `secrets` would do, but it loads hashes and HMAC, which a start-up can spare."""

import os


class RealRng:
    __slots__ = ()

    def random_bytes(self, size: int) -> bytes:
        return os.urandom(size)

    def below(self, limit: int) -> int:
        """A whole number from 0 up to, not including, `limit`, all equally likely."""
        if limit <= 0:
            raise ValueError(f"limit must be above 0, not {limit}")
        bits = (limit - 1).bit_length()
        size = (bits + 7) // 8
        while True:  # each round succeeds with a chance above one half, so that this ends
            number = int.from_bytes(os.urandom(size), "big") >> (size * 8 - bits)
            if number < limit:
                return number
