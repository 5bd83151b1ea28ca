"""A model's files: finding them, fetching them, reading their headers.

Knows folders in Hugging Face layout, GGUF files, the hub and one package. Knows no torch: values
are read by ``outrider.models.weights``.
"""

from outrider.checkpoint.checkpoint import Checkpoint, TensorInfo, open_checkpoint
from outrider.checkpoint.source import Source, resolve

__all__ = ["Checkpoint", "Source", "TensorInfo", "open_checkpoint", "resolve"]
