"""Multi-token prediction heads: one more layer of the target, which reads a state and the token after it.

At position t it takes the target's state h_t, after the final norm, and the token x_(t+1), and its own output m_t
scores x_(t+2) through the target's head. Further tokens come from running it again on its own output: (m_t, guess).
It keeps keys and values of its own and shares embeddings and head. It is an attention layer also where most of the
target's are not, so drafts leave no state behind that would have to be undone.
Sources: DeepSeek-V3 (arXiv 2412.19437, section 2.2); layout as in Qwen3.5's checkpoints (``mtp.*``).

Shape letters: B batch rows, N nodes, H hidden, M places behind the committed columns.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from outrider.engine.cache import Cache
from outrider.errors import CheckpointError, UnsupportedError, UsageError
from outrider.kernels.tree_attention import Sight
from outrider.models.decoder import Decoder, read_attention_block
from outrider.models.layers import BlockReader, Pass, ReadTensor, Sizes, rms_norm
from outrider.models.masks import Visible, additive, columns_seen
from outrider.models.rope import Angles

if TYPE_CHECKING:
    from outrider.checkpoint import Checkpoint


class MTP:
    """The layer, on its target.

    Args:
        read: gives a tensor by its name in the checkpoint.
        target: whose states it reads.

    Attributes:
        target: as given.
    """

    def __init__(self, read: ReadTensor, target: Decoder) -> None:
        self.target, c = target, target.config
        reader = BlockReader(read, target.dtype, target.activations, target.device, centred=c.centred_norms)
        self._embedding_norm = reader.norm("mtp.pre_fc_norm_embedding.weight")
        self._hidden_norm = reader.norm("mtp.pre_fc_norm_hidden.weight")
        self._fc = reader.linear("mtp.fc")
        self._block = read_attention_block(reader, c, "mtp.layers.", 0)
        self._norm = reader.norm("mtp.norm.weight")
        self._sizes = Sizes(c.num_heads, c.num_kv_heads, c.head_dim, c.norm_eps)
        precision = torch.promote_types(target.activations, torch.float32)
        self._angles = Angles(c.rope, c.rotary_size or c.head_dim, target.device, precision)

    def new_cache(self, *, slots: int, max_len: int) -> Cache:
        """Room for the keys and values of ``slots`` sequences of ``max_len`` positions, drafts included."""
        c = self.target.config
        return Cache(
            layers=(0,),
            slots=slots,
            rows=max_len,
            heads=c.num_kv_heads,
            head_dim=c.head_dim,
            dtype=self.target.activations,
            device=self.target.device,
        )

    @torch.inference_mode()
    def read(self, tokens_BN: Tensor, hidden_BNH: Tensor, past: "Past") -> Tensor:
        """Take in newly committed positions: m of each, [B, N, H]; their keys and values are left behind the others.

        Args:
            tokens_BN: the token after each position.
            hidden_BNH: the target's states.
            past: what each row has taken in before.
        """
        nodes = tokens_BN.shape[1]
        earlier_NN = torch.ones(nodes, nodes, dtype=torch.bool, device=tokens_BN.device).tril()
        place_N = torch.arange(nodes, device=tokens_BN.device)
        return self._run(
            tokens_BN, hidden_BNH, past, Places(place_N, place_N, earlier_NN.expand(len(tokens_BN), -1, -1))
        )

    @torch.inference_mode()
    def guess(
        self, tokens_BN: Tensor, hidden_BNH: Tensor, past: "Past", sees_BNM: Tensor, *, depth: int, first: int
    ) -> Tensor:
        """Run on guesses of one depth: m of each, [B, N, H]. The next ``read`` is laid over what this leaves.

        Args:
            tokens_BN: the guesses.
            hidden_BNH: m of what each follows.
            past: what each row has taken in.
            sees_BNM: which places behind that each sees, itself among them.
            depth: 0 for what follows the anchor.
            first: place of the first guess.
        """
        nodes = tokens_BN.shape[1]
        place_N = torch.arange(first, first + nodes, device=tokens_BN.device)
        return self._run(tokens_BN, hidden_BNH, past, Places(place_N, torch.full_like(place_N, depth), sees_BNM))

    def _run(self, tokens_BN: Tensor, hidden_BNH: Tensor, past: "Past", places: "Places") -> Tensor:
        eps, lengths_B1 = self._sizes.eps, past.lengths_B[:, None]
        span = past.cache.rows if past.longest is None else past.longest + places.sees_BNM.shape[2]
        cos, sin = self._angles(lengths_B1 + places.depth_N, hidden_BNH.dtype)
        shared = Pass(past.cache, past.rows, lengths_B1 + places.place_N, span, cos, sin)
        depth_BN = places.depth_N.expand(len(tokens_BN), -1)
        # It has no window, so nobody asks how deep the places are.
        sight = Sight(places.sees_BNM, depth_BN, depth_BN, past.lengths_B)
        embedded_BNH = rms_norm(self.target.embed(tokens_BN), self._embedding_norm, eps)
        both = torch.cat((embedded_BNH, rms_norm(hidden_BNH, self._hidden_norm, eps)), -1)
        out_BNH = self._fc(both.view(-1, both.shape[-1])).view(hidden_BNH.shape)

        def mask() -> Tensor:
            return additive(columns_seen(places.sees_BNM, past.lengths_B, span), hidden_BNH.dtype)

        return self._layer(out_BNH, shared, Visible(mask, 0, None, sight))

    def _layer(self, hidden_BNH: Tensor, shared: Pass, visible: Visible) -> Tensor:
        """The layer and the final norm."""
        computing, eps, block = self.target.computing, self._sizes.eps, self._block
        _, normed_BNH = computing.add_norm(hidden_BNH, None, block.attention_norm, eps)
        update = computing.attend(normed_BNH, block, self._sizes, shared, visible)
        hidden_BNH, normed_BNH = computing.add_norm(hidden_BNH, update, block.mlp_norm, eps)
        return computing.add_norm(hidden_BNH, computing.mlp(normed_BNH, block), self._norm, eps)[1]


class Past(NamedTuple):
    """What the rows of a batch have taken in.

    Attributes:
        cache: made by ``MTP.new_cache``.
        rows: slots of the batch.
        lengths_B: positions of each.
        longest: most of them, or None where the host does not know it.
    """

    cache: Cache
    rows: slice
    lengths_B: Tensor
    longest: int | None


class Places(NamedTuple):
    """Where nodes stand behind the positions taken in: their columns, how deep they are, which places they see."""

    place_N: Tensor
    depth_N: Tensor
    sees_BNM: Tensor


def load_mtp(checkpoint: "Checkpoint", target: Decoder, *, dummy: bool = False) -> MTP:
    """Build the heads that came with the target.

    Args:
        checkpoint: the target's, under the names that the decoder knows (``models.loading.named``).
        target: on its device.
        dummy: random weights, where the config says that there are heads.

    Raises:
        UsageError: neither the config nor the files speak of heads.
        UnsupportedError: there is more than one layer.
        CheckpointError: the config declares heads and the files lack them, whole or in part, or they have other shapes.
    """
    wanted, where = target.config.mtp_tensor_shapes(), checkpoint.source.path
    found = {name: tuple(info.shape) for name, info in checkpoint.tensors.items() if name.startswith("mtp.")}
    declared = target.config.mtp_layers
    if not declared and not found:
        raise UsageError(
            f"{where} has no multi-token prediction heads: its config names none (mtp_num_hidden_layers) and its files "
            "hold no tensors mtp.*. Take another drafter (ngram, or dflash with a draft model), or a model with heads."
        )
    if declared > 1 or any(name.startswith("mtp.layers.1.") for name in found):
        raise UnsupportedError(
            f"{where}: {max(declared, 2)} multi-token prediction layers are not run; expected one, which is run again "
            "for every further token."
        )
    if dummy:
        from outrider.models.tiny import dummy_values

        return MTP(dummy_values(wanted, target.device), target)
    missing = [name for name in wanted if name not in found]
    if missing:
        raise CheckpointError(
            f"{where}: the config declares multi-token prediction heads (mtp_num_hidden_layers={declared}), but "
            f"{len(missing)} of their {len(wanted)} tensors are missing, first {missing[0]!r}. Quantised copies often "
            "drop them: fetch the original, or one that kept them."
        )
    for name, shape in wanted.items():
        if found[name] != shape:
            raise CheckpointError(f"{where}: tensor {name!r} has shape {found[name]}, the config implies {shape}.")
    from outrider.models.weights import read_tensor

    return MTP(lambda name: read_tensor(checkpoint, name), target)
