"""Randomness of the kernel. The `secrets` module would also import hashes and HMAC, which slows startup."""

import os


class RealRng:
    __slots__ = ()

    def random_bytes(self, size: int) -> bytes:
        return os.urandom(size)

    def below(self, limit: int) -> int:
        """Return a uniformly distributed integer from 0 up to, not including, `limit`."""
        if limit <= 0:
            raise ValueError(f"limit must be > 0, got {limit}")
        bits = (limit - 1).bit_length()
        size = (bits + 7) // 8
        while True:  # each iteration succeeds with a probability above one half
            number = int.from_bytes(os.urandom(size), "big") >> (size * 8 - bits)
            if number < limit:
                return number
