"""``python -m benchmarks.overhead``: where a round of a DFlash drafter spends its time on this machine.

A random drafter of five layers on smollm2-135m (nothing depends on what is accepted). Functions are timed from the
outside, each without what it calls: matrix products (linear layers, attention), what else happens inside the layers
(norms, rotation, activations, cache), and the bookkeeping of drafting and verification around them.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from outrider.checkpoint import open_checkpoint, resolve
from outrider.drafters import blocks, chains, ddtree
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine import step
from outrider.engine.cache import Cache
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.models import decoder, linear
from outrider.models.config import Rope
from outrider.models.dflash import network
from outrider.models.dflash.config import DFlashConfig, LayerMask
from outrider.models.loading import load_decoder
from outrider.models.tiny import random_tensors
from outrider.provenance import provenance
from outrider.registry import DRAFTERS
from outrider.registry import resolve as pick

PRODUCTS, LAYERS = "matrix products", "inside the layers"
PROMPT, WARM_UP, ROUNDS = 256, 6, 40
WAYS = {"dflash": DraftOptions(tokens=15), "ddtree": DraftOptions(budget=63)}


class Stopwatch:
    """Seconds by kind of work, each without the work that it calls."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inner = [0.0]

    def timed(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, timed under ``kind``."""

        def run(*given: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            self._inner.append(0.0)
            result = function(*given, **named)
            taken = time.perf_counter() - begun
            self.seconds[kind] += taken - self._inner.pop()
            self._inner[-1] += taken
            return result

        return run

    def watch(self, owner: Any, name: str, kind: str) -> None:
        """Time a function where it is looked up."""
        setattr(owner, name, self.timed(kind, getattr(owner, name)))


def _watch_all(watch: Stopwatch) -> None:
    watch.watch(linear.PackedLinear, "__call__", PRODUCTS)
    watch.watch(torch.nn.functional, "scaled_dot_product_attention", PRODUCTS)
    for module in (decoder, network):
        for name in ("attend", "mlp", "rms_norm"):
            watch.watch(module, name, LAYERS)
    watch.watch(decoder.Decoder, "forward", LAYERS)
    watch.watch(network.DFlash, "draft", LAYERS)
    watch.watch(network.DFlash, "remember", LAYERS)
    watch.watch(step, "verify", "verification")
    watch.watch(Cache, "commit", "commit")
    watch.watch(chains.Chains, "__init__", "chain from logits")
    watch.watch(chains.Chains, "take", "chain from logits")
    watch.watch(ddtree.DDTreeDrafter, "_build", "tree from logits")
    watch.watch(blocks.Blocks, "draft", "draft: masks, tensors")


def main() -> None:
    """Measure both ways and print the shares."""
    parser = argparse.ArgumentParser(prog="benchmarks.overhead", description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    torch.set_num_threads(parser.parse_args().threads)
    target = load_decoder(open_checkpoint(resolve("smollm2-135m")), dtype=torch.float32, device=torch.device("cpu"))
    drafter = network.DFlash(_config(), random_tensors(_config()), target)
    watch = Stopwatch()
    _watch_all(watch)
    for name, options in WAYS.items():
        _measure(name, Setting(1, 1024, drafter, options), target, watch)
    print(provenance(threads=torch.get_num_threads()).line())


def _config() -> DFlashConfig:
    return DFlashConfig(
        vocab_size=49152,
        hidden_size=576,
        num_heads=9,
        num_kv_heads=3,
        head_dim=64,
        intermediate_size=1536,
        max_positions=8192,
        norm_eps=1e-5,
        rope=Rope(1e5),
        layers=(LayerMask(128, causal=True),) * 5,
        block_size=16,
        mask_token=0,
        taps=(1, 8, 14, 20, 27),
        target_hidden_size=576,
    )


def _measure(name: str, setting: Setting, target: decoder.Decoder, watch: Stopwatch) -> None:
    drafter = pick("drafter", DRAFTERS, name).build(setting)
    engine = Engine(target, drafter, slots=1, max_len=setting.max_len, device=target.device)
    engine.add(tuple(range(100, 100 + PROMPT)), SamplingParams(max_tokens=700, ignore_eos=True))
    for _ in range(WARM_UP):
        engine.step()
    watch.seconds.clear()
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        engine.step()
        rounds.append(time.perf_counter() - begun)
    total = sum(rounds)
    print(f"{name}: a round takes {1e3 * median(rounds):.1f} ms (median of {ROUNDS})")
    other = total - sum(watch.seconds.values())
    for kind, seconds in [
        *sorted(watch.seconds.items(), key=lambda item: -item[1]),
        ("engine, everything else", other),
    ]:
        print(f"  {kind:<24} {1e3 * seconds / ROUNDS:7.2f} ms {100 * seconds / total:5.1f} %")


if __name__ == "__main__":
    main()
