"""Multi-token prediction heads put together from Transformers' parts, which has no such class for Qwen3.5."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5DecoderLayer, Qwen3_5RMSNorm

from outrider.models.mtp import MTP


class TheirHeads(nn.Module):
    """The module, named so that its state is the checkpoint's ``mtp.*``; runs whole texts, and keeps nothing."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        config = deepcopy(model.config)
        config.num_hidden_layers, config.layer_types = 1, ["full_attention"]
        size, eps = config.hidden_size, config.rms_norm_eps
        self.pre_fc_norm_embedding, self.pre_fc_norm_hidden = Qwen3_5RMSNorm(size, eps), Qwen3_5RMSNorm(size, eps)
        self.fc = nn.Linear(2 * size, size, bias=False)
        self.layers = nn.ModuleList([Qwen3_5DecoderLayer(config, 0)])
        self.norm = Qwen3_5RMSNorm(size, eps)

    def said(self, model: nn.Module, tokens_T: Tensor, hidden_TH: Tensor) -> Tensor:
        """What they say at each position, [T, H], from its state and the token after it."""
        embedded = self.pre_fc_norm_embedding(model.model.embed_tokens(tokens_T))
        x = self.fc(torch.cat((embedded, self.pre_fc_norm_hidden(hidden_TH)), -1))[None]
        count = len(tokens_T)
        mask = torch.full((1, 1, count, count), float("-inf")).triu(1)
        rope = model.model.rotary_emb(x, torch.arange(count).expand(3, 1, count))
        return self.norm(self.layers[0](x, position_embeddings=rope, attention_mask=mask))[0]


def random_heads(pair, *, seed: int = 9) -> tuple[TheirHeads, MTP]:
    """The same heads, theirs and ours, on a pair of targets."""
    gen = torch.Generator().manual_seed(seed)
    shapes = pair.ours.config.mtp_tensor_shapes()
    values = {name: (0.3 if len(s) > 1 else 0.2) * torch.randn(s, generator=gen) for name, s in shapes.items()}
    theirs = TheirHeads(pair.theirs).eval()
    theirs.load_state_dict({name.removeprefix("mtp."): value for name, value in values.items()})
    return theirs, MTP(values.__getitem__, pair.ours)


@torch.inference_mode()
def logits_along(pair, heads: TheirHeads, text: list[int], guesses: list[int]) -> Tensor:
    """Logits of what follows the text and then each guess, [1 + guesses, V]: true states, then their own output."""
    hidden_TH = pair.theirs.model(torch.tensor([text[:-1]])).last_hidden_state[0]
    tokens, logits = text[1:], []
    for guess in [*guesses, 0]:
        said_TH = heads.said(pair.theirs, torch.tensor(tokens), hidden_TH)
        logits.append(pair.theirs.lm_head(said_TH[-1]))
        tokens, hidden_TH = [*tokens, guess], torch.cat((hidden_TH, said_TH[-1:]))
    return torch.stack(logits)


def guesses_of(pair, heads: TheirHeads, text: list[int], count: int) -> list[int]:
    """The best guesses, one after the other."""
    guesses: list[int] = []
    for _ in range(count):
        guesses = [*guesses, int(logits_along(pair, heads, text, guesses)[-1].argmax())]
    return guesses
