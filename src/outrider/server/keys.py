"""API keys: compared in a time that says nothing of them."""

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest


class Keys:
    """Keys that let requests in; without any, all are.

    Args:
        keys: as clients send them.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        # Digests are of one length, and every one is compared: neither a key's length nor its place shows in the time.
        self._digests = [sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def allow(self, authorization: bytes | None) -> bool:
        """Say whether a request with this ``Authorization`` header may come in."""
        if not self._digests:
            return True
        scheme, _, key = (authorization or b"").partition(b" ")
        given = sha256(key.strip()).digest()
        found = [compare_digest(given, digest) for digest in self._digests]
        return any(found) and scheme.lower() == b"bearer"
