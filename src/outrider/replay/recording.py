"""Texts of a target, written greedily by plain decoding, with the outputs of its blocks for every token.

Whatever taps a draft network wants, they are here, so one recording serves any number of replays.
Shape letters: T tokens of a text, L blocks of the target, H its width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from outrider.drafters.none import NoDrafter
from outrider.engine.costs import Costs
from outrider.engine.engine import Engine
from outrider.engine.params import SamplingParams
from outrider.engine.sequence import Sequence as Written
from outrider.engine.tree import DraftTree
from outrider.engine.walk import whole
from outrider.errors import UsageError
from outrider.models.decoder import Decoder

CHUNK = 512  # tokens read in one pass
SLOTS = 4  # texts written at once
MEGABYTE = 1_000_000
MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class RecordedText:
    """One prompt and what the target wrote.

    Attributes:
        tokens_T: ids of both.
        first: position of the first anchor: the prompt's last token.
        limit: tokens it would have grown to, had nothing ended it.
        blocks_LTH: output of each block for each token, in the target's dtype of activations.
    """

    tokens_T: Tensor
    first: int
    limit: int
    blocks_LTH: Tensor

    @property
    def anchors(self) -> range:
        """Positions that have something to guess after them."""
        return range(self.first, len(self.tokens_T) - 1)

    def features(self, taps: Sequence[int], count: int) -> Tensor:
        """Return the taps of the first ``count`` tokens side by side, [count, len(taps) * H]."""
        return torch.cat([self.blocks_LTH[tap, :count] for tap in taps], -1)


@dataclass(frozen=True, slots=True)
class Recording:
    """Texts of one target."""

    texts: tuple[RecordedText, ...]

    @property
    def anchors(self) -> list[range]:
        """Of each text all positions that have something to guess after them."""
        return [text.anchors for text in self.texts]

    @property
    def longest(self) -> int:
        """Tokens of the longest text, its prompt included."""
        return max(len(text.tokens_T) for text in self.texts)


def record(
    target: Decoder,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    stop_ids: frozenset[int] = frozenset(),
    report: Callable[[str], None] = lambda _line: None,
) -> Recording:
    """Let the target continue the prompts greedily, and keep what its blocks say of every token.

    Args:
        target: writes and is read.
        prompts: token ids.
        max_tokens: new tokens of each, unless one of ``stop_ids`` comes first.
        stop_ids: tokens that end a text.
        report: is told how much memory is taken, before it is.

    Raises:
        UsageError: no prompts, a prompt that does not fit, or more memory than there is.
    """
    if not prompts:
        raise UsageError("A recording needs at least one prompt.")
    _check_memory(target, prompts, max_tokens, report)
    written = _write(target, prompts, max_tokens, stop_ids)
    texts = tuple(_read(target, sequence) for sequence in written if sequence.output)
    return Recording(texts)


def _check_memory(
    target: Decoder, prompts: Sequence[Sequence[int]], max_tokens: int, report: Callable[[str], None]
) -> None:
    """Say what the recording takes; refuse what the machine does not have."""
    shape, tokens = target.shape, sum(map(len, prompts)) + max_tokens * len(prompts)
    needed = tokens * shape.num_layers * shape.hidden_size * target.activations.itemsize
    report(f"Recording at most {tokens} tokens of {shape.num_layers} blocks takes {needed / MEGABYTE:.0f} MB.")
    free = _free_bytes(target.device)
    if free is not None and needed > free:
        raise UsageError(
            f"Recording {tokens} tokens of {shape.num_layers} blocks takes {needed / MEGABYTE:.0f} MB, "
            f"{free / MEGABYTE:.0f} MB are free on {target.device}: give fewer prompts or fewer tokens (--max-tokens)."
        )


def _free_bytes(device: torch.device) -> int | None:
    """Memory that is free; None where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = MEMORY.read_text(encoding="ascii").splitlines()
    except OSError:  # another system than Linux
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _write(
    target: Decoder, prompts: Sequence[Sequence[int]], max_tokens: int, stop_ids: frozenset[int]
) -> list[Written]:
    longest, params = max(map(len, prompts)) + max_tokens, SamplingParams(max_tokens=max_tokens)
    if longest > target.shape.max_positions:
        raise UsageError(
            f"The longest prompt with its {max_tokens} new tokens makes {longest}; the target's context holds "
            f"{target.shape.max_positions}. Shorten the prompt or lower --max-tokens."
        )
    slots = min(SLOTS, len(prompts))
    engine = Engine(target, NoDrafter(), slots=slots, max_len=longest, device=target.device, costs=Costs(learn=False))
    written = [engine.add(tuple(prompt), params, stop_ids=stop_ids) for prompt in prompts]
    for _event in engine.run():
        pass
    return written


@torch.inference_mode()
def _read(target: Decoder, written: Written) -> RecordedText:
    """Run the whole text through the target once more, all blocks tapped."""
    tokens_T = torch.tensor([*written.prompt, *written.output], device=target.device)
    shape, length = target.shape, len(tokens_T)
    blocks_LTH = torch.empty(
        (shape.num_layers, length, shape.hidden_size), dtype=target.activations, device=target.device
    )
    cache, taps = target.new_cache(slots=1, max_len=length), tuple(range(shape.num_layers))
    for start in range(0, length, CHUNK):
        tree = DraftTree.chain(tokens_T[None, start : start + CHUNK])
        lengths_B, span = torch.tensor([start], device=target.device), start + tree.width
        out = target.forward(tree, cache, slice(0, 1), lengths_B, span=span, taps=taps)
        cache.commit(slice(0, 1), lengths_B, whole(tree).path_BN, tree.counts_B, in_place=True)
        for tap in taps:
            blocks_LTH[tap, start:span] = out.taps[tap][0]
    first = len(written.prompt) - 1
    return RecordedText(tokens_T, first, first + 1 + written.params.max_tokens, blocks_LTH)
