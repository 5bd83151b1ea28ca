"""``python -m benchmarks.linear``: what a pass's linear layers cost by number of rows, plain and packed.

Shapes are those of SmolLM2-135M: 30 blocks and the head, random weights. Prints a Markdown table.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import perf_counter

import torch

from outrider.models.linear import DenseLinear, Half16Linear, Linear, PackedLinear
from outrider.provenance import provenance

BLOCK = ((960, 576), (576, 576), (3072, 576), (576, 1536))
HEAD = (49152, 576)
ROWS = (1, 2, 4, 8, 16, 32)
LAYERS: dict[str, Callable[[torch.Tensor, None], Linear]] = {
    "plain fp32": DenseLinear,
    "packed fp32": PackedLinear,
    "packed fp16": Half16Linear,
}


def main() -> None:
    """Time each kind of layer, one after the other: each needs the memory of the whole model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    weights = [torch.randn(shape) / shape[1] ** 0.5 for shape in [*BLOCK * 30, HEAD]]
    print("| rows | " + " | ".join(str(rows) for rows in ROWS) + " |")
    print("| --- |" + " ---: |" * len(ROWS))
    for name, kind in LAYERS.items():
        layers = [kind(weight, None) for weight in weights]
        widths = [weight.shape[1] for weight in weights]
        cells = [f"{_milliseconds(layers, widths, rows, arguments.repeats):.0f}" for rows in ROWS]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(provenance(threads=arguments.threads).line())


def _milliseconds(layers: Sequence[Linear], widths: Sequence[int], rows: int, repeats: int) -> float:
    inputs = {width: torch.randn(rows, width) for width in set(widths)}
    calls = [partial(layer, inputs[width]) for layer, width in zip(layers, widths, strict=True)]
    taken = []
    for _ in range(repeats + 2):
        start = perf_counter()
        for call in calls:
            call()
        taken.append(perf_counter() - start)
    return median(taken[2:]) * 1e3


if __name__ == "__main__":
    with torch.inference_mode():
        main()
