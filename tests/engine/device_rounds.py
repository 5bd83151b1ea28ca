"""Texts by rounds that stay on the device, for the tests."""

import torch

from outrider.drafters.blocks import Blocks
from outrider.drafters.heads import Heads
from outrider.drafters.options import DraftOptions
from outrider.drafters.rounds import BlockRounds, MTPRounds, PlainRounds
from outrider.drafters.setting import Setting
from outrider.engine.graphs import GraphedRounds
from outrider.engine.interfaces import Committed
from outrider.engine.rounds import DeviceRounds
from outrider.engine.step import Rows, Stepper

ROOM = 96


class Nothing:
    """The memory of plain decoding."""

    def begin(self, slot, prompt):
        pass

    def observe(self, committed):
        pass


def proposer_of(method, network, heads, slots, rows):
    """Memory and device form: plain, mtp:K, dflash, ddtree:N."""
    name, _, number = method.partition(":")
    setting = Setting(slots, ROOM, network, DraftOptions())
    if name == "plain":
        return Nothing(), PlainRounds()
    if name == "mtp":
        memory = Heads(heads, setting, int(number))
        return memory, MTPRounds(memory, rows, int(number))
    memory = Blocks(network, setting)
    return memory, BlockRounds(memory, rows, width=1 + int(number) if number else None)


def texts(target, method, prompts, tokens, *, network=None, heads=None, slots=4, first=1, late=False):
    """Decode all prompts together, from slot ``first`` on; rows that have enough stop, the others go on."""
    rows, device = slice(first, first + len(prompts)), target.device
    memory, proposer = proposer_of(method, network, heads, slots, rows)
    cache = target.new_cache(slots=slots, max_len=ROOM + 40)
    stepper = Stepper(target, cache, proposer.taps, device)
    rounds = DeviceRounds(target, cache, proposer, rows, device, idle=ROOM)
    with torch.inference_mode():
        for row, prompt in enumerate(prompts):
            slot = rows.start + row
            stepper.begin(slot)
            memory.begin(slot, prompt)
            if len(prompt) > 1:
                read = stepper.read_chunk(Rows(slice(slot, slot + 1), (0,)), prompt[:-1])
                memory.observe(Committed((slot,), ((),), read.tree, read.walk, read.out))
            rounds.begin(row, prompt[-1], len(prompt) - 1)
    graphed, out = GraphedRounds(rounds), [[] for _ in prompts]
    pending = graphed.launch() if late else None
    for _ in range(tokens + 2):
        ticket = graphed.launch()
        read, pending = (pending, ticket) if late else (ticket, None)
        for row, (text, new) in enumerate(zip(out, read.read(), strict=True)):
            text.extend(new)
            if len(text) >= tokens:
                rounds.end(row)
        if all(len(text) >= tokens for text in out):
            break
    return [text[:tokens] for text in out]
