"""``python -m benchmarks.agreement``: how often a coarser dtype keeps the next word of fp32, on real texts.

Texts are fp32 greedy completions of the prompts, so every position is one that decoding meets. Prints the share
of positions with the same argmax, and the mean KL divergence of the laws (fp32 to the other, in nats).
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.workload import read_workload
from outrider.checkpoint import resolve
from outrider.engine.tree import DraftTree
from outrider.models.decoder import Decoder
from outrider.provenance import provenance
from outrider.runner import load


def main() -> None:
    """Complete with fp32, then read each text once with each dtype."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--prompts", type=Path, default=Path(__file__).parent / "prompts.jsonl")
    parser.add_argument("--max-tokens", type=int, default=96)
    arguments = parser.parse_args()
    source = resolve(arguments.model)
    prompts = read_workload(arguments.prompts, source, max_tokens=arguments.max_tokens, per_category=99).prompts
    exact, coarse = (load(arguments.model, dtype=dtype) for dtype in ("float32", arguments.dtype))
    same = total = 0
    divergence = 0.0
    for item in prompts:
        prompt = tuple(item.ids)
        output = exact.generate(prompt, max_tokens=arguments.max_tokens, ignore_eos=True).tokens
        laws = [_laws(runner.target, prompt + output, len(output)) for runner in (exact, coarse)]
        same += int((laws[0].argmax(-1) == laws[1].argmax(-1)).sum())
        divergence += float((laws[0].exp() * (laws[0] - laws[1])).sum())
        total += len(output)
    print(
        f"{arguments.dtype} against float32, {total} positions of {len(prompts)} texts: same argmax "
        f"{100 * same / total:.2f} %, KL {divergence / total:.1e} nats"
    )
    print(provenance(threads=torch.get_num_threads()).line())


@torch.inference_mode()
def _laws(target: Decoder, tokens: tuple[int, ...], count: int) -> Tensor:
    """Log-probabilities [count, V] at the positions that decide the last ``count`` tokens."""
    tree = DraftTree.chain(torch.tensor([tokens[:-1]]))
    cache = target.new_cache(slots=1, max_len=len(tokens))
    out = target.forward(tree, cache, slice(0, 1), torch.tensor([0]), span=tree.width)
    return target.logits(out.hidden_BNH[0, -count:]).log_softmax(-1)


if __name__ == "__main__":
    main()
