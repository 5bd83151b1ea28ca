"""What ``outrider train export`` can be asked for. Imported when the command line starts: nothing heavy here."""

from enum import StrEnum


class Format(StrEnum):
    """Of the files."""

    zlab = "zlab"
    speculators = "speculators"
    gguf = "gguf"


class StoredDtype(StrEnum):
    """Of the weights; not float16, which Qwen3's largest features overflow."""

    bfloat16 = "bfloat16"
    float32 = "float32"
