"""The recipe's network is the published architecture; documents of a row are strangers; the lesson can be learnt."""

import pytest
import torch
from recipes.small_hybrid.lesson import Lesson
from recipes.small_hybrid.network import HybridConfig, HybridNetwork
from recipes.small_hybrid.train import begin, narrowed, write
from tiny_model import write_tiny_model
from train.rows import batch_of
from transformers import AutoModelForCausalLM

import outrider

WORDS = 300
TINY = HybridConfig(
    vocab_size=WORDS,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    linear_num_key_heads=2,
    linear_num_value_heads=6,
    linear_key_head_dim=8,
    linear_value_head_dim=12,
)


@pytest.fixture
def network() -> HybridNetwork:
    torch.manual_seed(0)
    network = HybridNetwork(TINY, torch.float32)
    with torch.no_grad():
        for name, one in network.named_parameters():
            if "norm" in name:
                one.add_(0.2 * torch.randn_like(one))
    return network


def hidden_of(network, tokens_BT, document_BT, position_BT):
    length = tokens_BT.shape[1]
    earlier = torch.ones(length, length, dtype=torch.bool).tril()
    visible = ((document_BT[:, :, None] == document_BT[:, None]) & earlier)[:, None]
    return network.model(tokens_BT, network.places(position_BT, visible))


def test_its_logits_are_those_of_transformers(network, tmp_path):
    write(network, tmp_path)
    peer = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    tokens = torch.randint(0, WORDS, (2, 100))
    hidden = hidden_of(network, tokens, torch.zeros_like(tokens), torch.arange(100).expand(2, 100))
    with torch.no_grad():
        torch.testing.assert_close(
            hidden @ network.model.embed_tokens.weight.T, peer(tokens).logits, rtol=1e-4, atol=1e-4
        )


def test_documents_of_a_row_see_nothing_of_one_another(network):
    first, second = torch.randint(0, WORDS, (1, 37)), torch.randint(0, WORDS, (1, 63))
    alone = [
        hidden_of(network, one, torch.zeros_like(one), torch.arange(one.shape[1])[None]) for one in (first, second)
    ]
    document = torch.tensor([0] * 37 + [1] * 63)[None]
    position = torch.cat((torch.arange(37), torch.arange(63)))[None]
    together = hidden_of(network, torch.cat((first, second), 1), document, position)
    torch.testing.assert_close(together, torch.cat(alone, 1), rtol=1e-4, atol=1e-4)


def test_trunk_and_mtp_head_learn_from_a_teacher(network, tmp_path):
    teacher = outrider.load(str(write_tiny_model(tmp_path / "teacher", vocab_size=WORDS)), device="cpu").target
    begin(network, narrowed(teacher, TINY.hidden_size))
    lesson = Lesson(network, teacher, rows=2, row_length=48, mtp_rows=1)
    batch = batch_of([list(range(1, 40)), list(range(60, 80)), list(range(5, 45))], [4, 4, 4])
    adam = torch.optim.AdamW(network.parameters(), 1e-2)
    costs = []
    for _ in range(25):
        scores = lesson.score(batch)
        costs.append([float(score.cost.detach()) for score in scores])
        torch.stack([score.cost for score in scores]).sum().backward()
        adam.step()
        adam.zero_grad()
    for first, last in zip(costs[0], costs[-1], strict=True):
        assert last < 0.6 * first


def test_the_cost_leaves_out_what_has_no_next_token(network, tmp_path):
    teacher = outrider.load(str(write_tiny_model(tmp_path / "teacher", vocab_size=WORDS)), device="cpu").target
    lesson = Lesson(network, teacher, rows=2, row_length=48, mtp_rows=2)
    batch = batch_of([list(range(1, 40)), list(range(5, 45))], [4, 4])
    before = [float(score.cost.detach()) for score in lesson.score(batch)]
    batch.tokens_BT[batch.document_BT < 0] = 7  # padding
    after = [float(score.cost.detach()) for score in lesson.score(batch)]
    assert after == pytest.approx(before, rel=1e-5)
