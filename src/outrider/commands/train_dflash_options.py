"""The options of ``outrider train dflash``, in groups. Imported when the command line starts: nothing heavy here."""

from dataclasses import dataclass
from typing import Annotated

import typer

from outrider.commands.options import option
from outrider.errors import UsageError
from outrider.train.options import Attention, Loss, Optimizer, TrainOptions
from outrider.train.shape import MEANINGS, Shape


@dataclass(frozen=True, kw_only=True)
class Making:
    """The drafter that is made where none is given."""

    init: Annotated[
        str | None,
        option("--init", metavar="PATH", text="Start from this drafter, or a checkpoint of a run, not from nothing."),
    ] = None
    layers: Annotated[str, typer.Option("--layers", metavar="LETTERS", help=f"One a layer: {MEANINGS}.")] = "sssss"
    window: Annotated[int, typer.Option("--window", min=1, help="Of the layers that slide, in tokens.")] = 2048
    block: Annotated[int, typer.Option("--block", min=2, help="Slots of a block, the anchor's included.")] = 16
    taps: Annotated[
        str | None,
        option("--taps", metavar="A,B,...", text="Target blocks that feed it, from 0; evenly spread if left out."),
    ] = None
    mask_token: Annotated[
        int | None, option("--mask-token", metavar="ID", text="In masked slots; one that no text has if left out.")
    ] = None
    heads: Annotated[int | None, option("--heads", min=1, text="Query heads; the target's if left out.")] = None
    kv_heads: Annotated[int | None, option("--kv-heads", min=1, text="Key/value heads; the target's.")] = None
    inner: Annotated[int | None, option("--inner", min=1, text="Width inside the MLPs; the target's.")] = None

    def shape(self) -> Shape:
        """Return the checked shape.

        Raises:
            UsageError: taps that are no numbers.
        """
        return Shape(
            layers=self.layers,
            window=self.window,
            block_size=self.block,
            taps=None if self.taps is None else _numbers("--taps", self.taps),
            mask_token=self.mask_token,
            heads=self.heads,
            kv_heads=self.kv_heads,
            intermediate_size=self.inner,
        )


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How it learns; each field is one of ``TrainOptions``."""

    steps: Annotated[int | None, option("--steps", min=1, text="Length of the whole run; or give --tokens.")] = None
    tokens: Annotated[int | None, option("--tokens", min=1, text="Response tokens of the whole run.")] = None
    lr: Annotated[float, typer.Option("--lr", help="Highest learning rate.")] = 6e-4
    warm_up: Annotated[float, typer.Option("--warm-up", help="Share of the steps in which it rises.")] = 0.04
    rows: Annotated[int, typer.Option("--rows", min=1, help="Packed rows at once, of each process.")] = 48
    row_length: Annotated[int, typer.Option("--row-length", min=8, help="Tokens of a row.")] = 512
    anchors: Annotated[int, typer.Option("--anchors", min=1, help="Blocks of a row, drawn anew every epoch.")] = 32
    accumulation: Annotated[int, typer.Option("--accumulation", min=1, help="Batches that a step gathers.")] = 1
    gamma: Annotated[
        float | None, option("--gamma", text="Slot k weighs exp(-(k-1)/gamma); by the block's size if left out.")
    ] = None
    loss: Annotated[Loss, typer.Option("--loss", help="Slots by gamma, or by expected accepted length.")] = "decay"
    pace: Annotated[float, typer.Option("--pace", help="Floor of D-PACE's probabilities.")] = 0.5
    distillation: Annotated[
        float, typer.Option("--distillation", help="Share of the loss against the target's own distribution.")
    ] = 0.0
    optimizer: Annotated[Optimizer, typer.Option("--optimizer", help="Muon takes the matrices alone.")] = "adamw"
    weight_decay: Annotated[float, typer.Option("--weight-decay", help="Of matrices.")] = 0.01
    clip: Annotated[float, typer.Option("--clip", help="Longest gradient.")] = 1.0
    ema: Annotated[float, typer.Option("--ema", help="Decay of the mean over steps, which is what is kept.")] = 0.999
    bf16: Annotated[
        bool | None, option("--bf16/--no-bf16", text="Compute in bfloat16; default: on a GPU. Weights are float32.")
    ] = None
    attention: Annotated[Attention, typer.Option("--attention", help="flex wants a GPU; dense runs anywhere.")] = "auto"
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of weights, order and anchors.")] = 0
    held_out: Annotated[float, typer.Option("--held-out", help="Share of prompts that are never trained on.")] = 0.01
    evaluate_every: Annotated[
        int, typer.Option("--evaluate-every", min=0, help="Steps between measurements in the engine; 0: at the end.")
    ] = 500
    evaluate_prompts: Annotated[int, typer.Option("--evaluate-prompts", min=1, help="Of each measurement.")] = 48
    evaluate_tokens: Annotated[int, typer.Option("--evaluate-tokens", min=1, help="New tokens of each prompt.")] = 128
    checkpoint_every: Annotated[int, typer.Option("--checkpoint-every", min=1, help="Steps.")] = 500
    log_every: Annotated[int, typer.Option("--log-every", min=1, help="Steps between lines of the log.")] = 20
    keep: Annotated[int, typer.Option("--keep", min=1, help="Newest checkpoints that stay.")] = 2
    keep_step: Annotated[
        list[int] | None, option("--keep-step", metavar="N", text="Keep this step's for good; repeatable.")
    ] = None

    def options(self) -> TrainOptions:
        """Return the checked settings.

        Raises:
            UsageError: a value out of range, or a length that is not said once.
        """
        settings = dict(vars(self))
        kept = settings.pop("keep_step") or ()
        return TrainOptions(**settings, keep_steps=tuple(kept))


@dataclass(frozen=True, kw_only=True)
class Running:
    """How far a run goes, and from where."""

    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest checkpoint there, if any.")] = False
    minutes: Annotated[
        float | None, option("--minutes", text="Stop after so many, with a checkpoint; the schedule is --steps'.")
    ] = None
    other_target: Annotated[bool, option("--other-target", text="Train on what another target wrote.")] = False


def _numbers(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{name} {text!r}: expected whole numbers with commas between, as 1,8,15.") from None
