"""The target reads packed rows as it reads each document alone."""

from dataclasses import replace

import pytest
import torch
from dflash.pair import TARGET
from engine.running import HYBRID, tiny_target
from train.rows import batch_of

from outrider.engine.tree import DraftTree
from outrider.models.decoder import Decoder
from outrider.models.tiny import random_tensors
from outrider.train.features import Features

TEXTS = [list(range(1, 20)), list(range(3, 12)), list(range(5, 25)), list(range(2, 9))]


def read_alone(target: Decoder, text: list[int], taps: tuple[int, ...]):
    cache = target.new_cache(slots=1, max_len=len(text))
    out = target.forward(
        DraftTree.chain(torch.tensor([text])), cache, slice(0, 1), torch.tensor([0]), span=len(text), taps=taps
    )
    return torch.cat([out.taps[tap][0] for tap in taps], -1), out.hidden_BNH[0]


def windowed(*windows: int | None) -> Decoder:
    config = replace(TARGET, windows=windows)
    return Decoder(config, random_tensors(config), dtype=torch.float32, device=torch.device("cpu"))


def check(target: Decoder, *, flex=False) -> None:
    taps = (2, 0)
    batch = batch_of(TEXTS, [4, 2, 6, 3])
    read = Features(target, taps, rows=2, row_length=48, flex=flex).read(batch)
    seen = 0
    for number in batch.document_BT.unique().tolist():
        if number < 0:
            continue
        inside = batch.document_BT == number
        features_TF, hidden_TH = read_alone(target, batch.tokens_BT[inside].tolist(), taps)
        torch.testing.assert_close(read.features_BTF[inside], features_TF, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(read.hidden_BTH[inside], hidden_TH, rtol=1e-4, atol=1e-5)
        seen += 1
    assert seen == len(TEXTS)
    assert not read.features_BTF.is_inference()


def test_packed_documents_do_not_see_each_other():
    check(windowed(None, None, None, None))


def test_the_state_of_a_document_ends_with_it():
    check(tiny_target(TARGET.vocab_size, **HYBRID))


def test_a_target_with_windows_is_read_with_them():
    check(windowed(None, 5, None, 5))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("windows", [(None,) * 4, (None, 5, None, 5)])
def test_flex_attention_reads_the_same(windows):
    check(windowed(*windows), flex=True)
