"""Which split a sentence belongs to."""

import zlib


def home(source: str) -> str:
    """ "train", "valid" or "test", from a hash of the source.

    The splits share no sentence, whatever their sizes, and each is drawn without drawing the others.
    """
    return {0: "valid", 1: "test"}.get(zlib.crc32(source.encode()) % 12, "train")
