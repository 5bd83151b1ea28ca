"""``python -m benchmarks.tune_products --out plans.json``: how products of few rows are best cut on this GPU.

Each size of a model's shapes is timed with several cuts and with the library's product; weights rotate, so that none
is found in the cache. The table goes to ``outrider bench step --plans``.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median

import torch

from outrider.kernels.plans import Size
from outrider.kernels.skinny import Plan, quantised, skinny, skinny_plainly
from outrider.pace.shapes import Shapes, read_shapes
from outrider.provenance import provenance

CACHE = 200e6  # bytes that weights must exceed together, several times a GPU's cache
TOKENS = (16, 64)
CALLS = 24


def main() -> None:
    """Time, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", default="qwen3.6-27b")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--narrow", action="store_true", help="float8 weights as well")
    arguments = parser.parse_args()
    with torch.inference_mode():
        tune(read_shapes(arguments.shapes), arguments.out, narrow=arguments.narrow)


def tune(shapes: Shapes, out: Path, *, narrow: bool) -> None:
    """Time every size and write the table."""
    rows = []
    for size in sizes(shapes, narrow=narrow):
        times = {cut: _microseconds(size, cut) for cut in cuts(size)}
        best = min(times, key=lambda cut: times[cut])
        library = None if size.narrow else _microseconds(size, None)
        moved = size.outputs * size.inputs * (1 + size.gated) * (1 if size.narrow else 2)
        rows.append({"size": list(size), "cut": list(best), "microseconds": times[best], "library": library,
                     "all": [[*cut, time] for cut, time in times.items()]})  # fmt: skip
        compared = "" if library is None else f", library {library:.1f}"
        print(
            f"{tuple(size)}: {times[best]:.1f} us{compared}, {moved / times[best] / 1e6:.2f} TB/s, {tuple(best)}",
            flush=True,
        )
    table = {"plans": rows, "provenance": provenance().model_dump()}
    out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def sizes(shapes: Shapes, *, narrow: bool) -> list[Size]:
    """Products of a target, its heads and its drafter."""
    matrices = set(_matrices(shapes))
    both = [] if narrow else [(outputs, inputs, gated, False) for outputs, inputs, gated in matrices]
    if narrow:
        both += [(outputs // 128 * 128, inputs, gated, True) for outputs, inputs, gated in matrices
                 if outputs != shapes.target.vocab_size]  # fmt: skip
    return sorted(Size(o, i, tokens, g, n) for (o, i, g, n), tokens in product(both, TOKENS))


def _matrices(shapes: Shapes) -> Iterator[tuple[int, int, bool]]:
    """Outputs and inputs as they are stacked, and whether they gate."""
    for config in (shapes.target, shapes.drafter):
        if config is None:
            continue
        hidden, inner = config.hidden_size, config.intermediate_size
        queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        gated = config is shapes.target and shapes.target.gated
        yield from [(inner, hidden, True), (hidden, inner, False), (hidden, queries, False)]
        yield (1 + gated) * queries + 2 * keys, hidden, False
    target, drafter = shapes.target, shapes.drafter
    yield target.vocab_size, target.hidden_size, False
    if target.delta is not None:
        values = target.delta.value_heads * target.delta.value_size
        yield target.delta.channels + values + 2 * target.delta.value_heads, target.hidden_size, False
        yield target.hidden_size, values, False
    if target.mtp_layers:
        yield target.hidden_size, 2 * target.hidden_size, False
    if drafter is not None:
        yield drafter.hidden_size, len(drafter.taps) * drafter.target_hidden_size, False
        yield 2 * drafter.num_layers * drafter.num_kv_heads * drafter.head_dim, drafter.hidden_size, False


def cuts(size: Size) -> list[Plan]:
    """Cuts to try, a dozen at most."""
    wide = (64, 128) if size.tokens > 16 else (32, 64)  # noqa: PLR2004 -- as the smallest tile
    deep = ((128, 4),) if size.narrow or size.tokens > 16 else ((128, 4), (256, 3))  # noqa: PLR2004
    pieces = (1,) if size.gated else (1, 2, 3, 4, 6, 8)
    fewest = 132 if size.outputs < 2**16 else 0  # programs; the head has enough whatever its cut
    tried = [Plan(w, d, p, 4, s) for (d, s), w, p in product(deep, wide, pieces)
             if fewest <= -(-size.outputs // w) * p <= max(900, 2 * fewest) or p == 1]  # fmt: skip
    if size.gated:  # its tiles are half as wide
        tried = [cut._replace(outputs=2 * cut.outputs) for cut in tried] + tried
    return list(dict.fromkeys(tried))


def _microseconds(size: Size, cut: Plan | None) -> float:
    """Median time of one product in a graph of many, over weights that rotate; infinite for what does not run."""
    outputs = size.outputs * (1 + size.gated)
    copies = max(2, int(CACHE // (outputs * size.inputs * (1 if size.narrow else 2))) + 1)
    rows = torch.randn(size.tokens, size.inputs, device="cuda").bfloat16()
    weights = [_weight(outputs, size) for _ in range(copies)]

    def call(index: int) -> None:
        weight, scale = weights[index % copies]
        if cut is None:
            skinny_plainly(rows, weight, gated=size.gated)
        else:
            skinny(rows, weight, scale=scale, gated=size.gated, cut=cut)

    try:
        return _graphed(call)
    except Exception as error:  # noqa: BLE001 -- a cut that the device has no room for is no choice
        print(f"{tuple(size)} {cut}: {type(error).__name__}: {str(error)[:80]}", flush=True)
        return float("inf")


def _weight(outputs: int, size: Size) -> tuple[torch.Tensor, torch.Tensor | None]:
    weight = torch.randn(outputs, size.inputs, device="cuda", dtype=torch.bfloat16)
    return quantised(weight) if size.narrow else (weight, None)


def _graphed(call: Callable[[int], None], repeats: int = 5) -> float:
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(aside):
        for index in range(3):
            call(index)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(CALLS):
            call(index)
    taken: Sequence[float] = []
    for _ in range(repeats + 1):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        marks[0].record()
        graph.replay()
        marks[1].record()
        torch.cuda.synchronize()
        taken = [*taken, 1e3 * marks[0].elapsed_time(marks[1]) / CALLS]
    return median(taken[1:])


if __name__ == "__main__":
    main()
