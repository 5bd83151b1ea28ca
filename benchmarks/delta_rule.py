"""``python -m benchmarks.delta_rule``: what the forms of the gated delta rule lose in float32, and what they take.

One row of 64 tokens in two value heads of 128 by 128, as those of Qwen3.5, from a random state; a chain, so that all
forms do the same. Losses are the largest difference from one token at a time in float64, in units of the outputs' root
mean square; times are the best of several runs on one thread.
"""

import json
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from outrider.kernels import gdn_tree
from outrider.kernels.gdn_chunk import chunk
from outrider.provenance import provenance

TOKENS, HEADS, SIZE, RUNS = 64, 2, 128, 20
KEYS = {"keys unlike": 0.0, "keys alike": 2.0}
Form = Callable[[list[Tensor]], Tensor]


def draw(alike: float) -> list[Tensor]:
    """Query, key, value, log decay, beta and state in float64."""
    gen = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=gen, dtype=torch.float64)

    key = functional.normalize(normal(1, TOKENS, 1, SIZE) + alike * normal(1, 1, 1, SIZE), dim=-1)
    query = functional.normalize(normal(1, TOKENS, 1, SIZE), dim=-1) * SIZE**-0.5
    value, state = normal(1, TOKENS, HEADS, SIZE), normal(1, HEADS, SIZE, SIZE)
    log_decay = -0.5 * torch.rand(1, TOKENS, HEADS, generator=gen, dtype=torch.float64)
    return [query, key, value, log_decay, torch.sigmoid(2 * normal(1, TOKENS, HEADS)), state]


def one_by_one(inputs: list[Tensor]) -> Tensor:
    """As plain decoding does: a tree of one node, committed, and the next."""
    *steps, state = inputs
    alone, root, one = torch.ones(1, 1, 1, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.int64), torch.tensor([1])
    outputs = []
    for token in range(TOKENS):
        query, key, value, log_decay, beta = (tensor[:, token : token + 1] for tensor in steps)
        out, tape = gdn_tree.tree(query, key, value, log_decay, beta, state, alone)
        state = gdn_tree.commit(state, tape, root, one)
        outputs.append(out)
    return torch.cat(outputs, 1)


def as_tree(inputs: list[Tensor]) -> Tensor:
    """All nodes at once, as a tree that happens to be a chain."""
    query, key, value, log_decay, beta, state = inputs
    sees = torch.ones(1, TOKENS, TOKENS, dtype=torch.bool).tril()
    return gdn_tree.tree(query, key, value, log_decay, beta, state, sees)[0]


def in_chunks(inputs: list[Tensor]) -> Tensor:
    """As prompts are read."""
    query, key, value, log_decay, beta, state = inputs
    return chunk(query, key, value, log_decay, beta, state)[0]


FORMS: dict[str, Form] = {"one token at a time": one_by_one, "a tree": as_tree, "chunks of 64": in_chunks}


def seconds(form: Form, inputs: list[Tensor]) -> float:
    """Best time of several runs."""
    best = float("inf")
    for _ in range(RUNS):
        begun = time.perf_counter()
        form(inputs)
        best = min(best, time.perf_counter() - begun)
    return best


def main() -> None:
    """Print the record."""
    torch.set_num_threads(1)
    rows = []
    for keys, alike in KEYS.items():
        inputs = draw(alike)
        exact, single = one_by_one(inputs), [tensor.float() for tensor in inputs]
        scale = float(exact.square().mean().sqrt())
        for name, form in FORMS.items():
            loss = float((form(single) - exact).abs().max()) / scale
            rows.append(
                {"keys": keys, "form": name, "loss": f"{loss:.1e}", "ms": round(1e3 * seconds(form, single), 2)}
            )
    print(json.dumps({"rows": rows, "provenance": provenance().model_dump(mode="json")}, indent=1))


if __name__ == "__main__":
    main()
