"""What the sample clients share: rounds with idle gaps, as a service has them, and one digest of all results.

A client knows nothing of libttt. It prints only what must be the same with and without it, so two runs are compared
byte by byte. CLIENT_ROUNDS and CLIENT_GAP (seconds) set how long it runs.
"""
import hashlib
import os
import time

ROUNDS = int(os.environ.get("CLIENT_ROUNDS", "20"))
GAP = float(os.environ.get("CLIENT_GAP", "0.1"))


class Digest:
    """SHA-256 over every result, with the result's name and shape."""

    def __init__(self):
        self._hash = hashlib.sha256()
        self._count = 0

    def add(self, name, array):
        self._hash.update(f"{name} {array.dtype} {array.shape}".encode())
        self._hash.update(array.tobytes())
        self._count += 1

    def __str__(self):
        return f"{self._count} results, sha256 {self._hash.hexdigest()}"


def rounds():
    """Round numbers, with an idle gap after each."""
    for i in range(ROUNDS):
        yield i
        time.sleep(GAP)
