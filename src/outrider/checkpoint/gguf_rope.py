"""Rotary embedding settings of a GGUF file as Hugging Face's ``rope_parameters``.

Llama 3's scaling is not in the metadata: its converter stores only the finished divisors of the
frequencies, as the tensor ``rope_freqs.weight``. They are recognised here, or refused.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.checkpoint.gguf_values import Values
from outrider.errors import UnsupportedError

SCALING = "rope.scaling."
# Settings of llama.cpp's own that change YaRN's attention or its range, and their neutral values.
# Hugging Face's formula has no place for them.
NEUTRAL = {
    f"{SCALING}attn_factor": (0.0, 1.0),
    f"{SCALING}yarn_attn_factor": (0.0, 1.0),
    f"{SCALING}yarn_ext_factor": (-1.0, 1.0),
    f"{SCALING}yarn_log_multiplier": (0.0,),
}

# The constants of Llama 3.1, 3.2 and 3.3; the factor alone differs between them.
LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
CLOSE = 1e-4
PARTLY_ROTATED = ("qwen35",)  # architectures whose families rotate a part of each head


def rope_parameters(values: Values, head_dim: int, divisors: NDArray[np.float32] | None) -> dict[str, Any]:
    """Return type, base frequency and scaling.

    Args:
        values: the file's metadata.
        head_dim: size of a head.
        divisors: the content of ``rope_freqs.weight``, if the file has it.

    Raises:
        UnsupportedError: a scaling, or a rotation of part of a head, that is not run.
    """
    rotated = values.integer("rope.dimension_count", default=head_dim)
    if rotated != head_dim and values.architecture not in PARTLY_ROTATED:
        raise UnsupportedError(
            f"{values.path} rotates {rotated} of {head_dim} dimensions of a head; only whole heads "
            "are run for this architecture."
        )
    theta = values.number("rope.freq_base", default=10000.0)
    scaling = _scaling(values)
    if divisors is not None and not np.allclose(divisors, 1.0):
        scaling = _llama3(values, scaling, theta, divisors.astype(np.float64))
    return {"rope_theta": theta, **scaling}


def _llama3(values: Values, scaling: dict[str, Any], theta: float, divisors: NDArray[np.float64]) -> dict[str, Any]:
    """Return the settings that lead to ``divisors``, if they are Llama 3's."""
    found = {"rope_type": "llama3", "factor": round(float(divisors.max()), 4), **LLAMA3}
    expected = _llama3_divisors(theta, len(divisors), float(divisors.max()))
    if scaling["rope_type"] != "default" or not np.allclose(divisors, expected, rtol=CLOSE):
        raise UnsupportedError(
            f"{values.path} scales its positions by a rope_freqs.weight that is not Llama 3's; "
            "that is not run. Use the model's folder in Hugging Face layout."
        )
    return found


def _llama3_divisors(theta: float, count: int, factor: float) -> NDArray[np.float64]:
    """Slow frequencies are divided by the factor, fast ones kept, those between blended."""
    low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
    frequencies = theta ** -(np.arange(count, dtype=np.float64) / count)
    turns = LLAMA3["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    divisors: NDArray[np.float64] = 1.0 / (kept + (1.0 - kept) / factor)
    return divisors


def _scaling(values: Values) -> dict[str, Any]:
    kind = values.text(f"{SCALING}type", default="none")
    if kind == "none":
        return {"rope_type": "default"}
    if kind == "linear":
        return {"rope_type": "linear", "factor": values.number(f"{SCALING}factor")}
    if kind == "yarn":
        return _yarn(values)
    raise UnsupportedError(f"{values.path} scales its positions by {kind!r}; none, linear and yarn are run.")


def _yarn(values: Values) -> dict[str, Any]:
    for key, neutral in NEUTRAL.items():
        value = values.number(key, default=neutral[0])
        if value not in neutral:
            raise UnsupportedError(
                f"{values.path}: {values.architecture}.{key} = {value:g} is not run; only {neutral[-1]:g} is."
            )
    return {
        "rope_type": "yarn",
        "factor": values.number(f"{SCALING}factor"),
        "original_max_position_embeddings": values.integer(f"{SCALING}original_context_length"),
        "beta_fast": values.number(f"{SCALING}yarn_beta_fast", default=32.0),
        "beta_slow": values.number(f"{SCALING}yarn_beta_slow", default=1.0),
    }
