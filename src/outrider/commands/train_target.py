"""The target of a training run: on this machine with its weights, or on a server, of which only the files are here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from outrider.commands.opening import dtype_name, open_runner
from outrider.commands.options import Drafting, Loading
from outrider.commands.screen import stderr, waiting
from outrider.commands.train_options import Remote

if TYPE_CHECKING:
    from outrider.checkpoint.checkpoint import Checkpoint
    from outrider.models.decoder import Decoder
    from outrider.text.tokenizer import Tokenizer
    from outrider.train.data import Answering
    from outrider.train.manifest import Settings

BATCH_CPU, BATCH_GPU, BATCH_SERVER = 16, 1024, 32
ANY = 1 << 30  # context of a model on a server, which knows its own


@dataclass(frozen=True, slots=True)
class Target:
    """A model as far as it was needed.

    Attributes:
        decoder: None where a server answers.
        dtype: of its weights.
    """

    checkpoint: "Checkpoint"
    tokenizer: "Tokenizer"
    decoder: "Decoder | None"
    dtype: str

    @property
    def context(self) -> int:
        """Most tokens of a sequence."""
        return ANY if self.decoder is None else self.decoder.shape.max_positions

    def batch(self, wanted: int | None) -> int:
        """Return how many answers are written at once."""
        if wanted is not None:
            return wanted
        if self.decoder is None:
            return BATCH_SERVER
        return BATCH_GPU if self.decoder.device.type == "cuda" else BATCH_CPU


def open_target(model: str, *, loading: Loading, remote: Remote) -> Target:
    """Load the model, or its tokenizer and headers alone where a server answers.

    Raises:
        OutriderError: whatever is wrong with its files.
    """
    if remote.server is None:
        runner = open_runner(model, drafter="none", drafting=Drafting(), loading=loading)
        return Target(runner.checkpoint, runner.tokenizer, runner.target, dtype_name(loading, runner))
    from outrider.checkpoint.checkpoint import open_checkpoint
    from outrider.checkpoint.source import resolve
    from outrider.text.tokenizer import load_tokenizer

    with waiting(stderr()) as telling:
        checkpoint = open_checkpoint(resolve(model, report=telling.say))
    return Target(checkpoint, load_tokenizer(checkpoint), None, "the server's")


def answering(
    target: Target, settings: "Settings", *, remote: Remote, batch: int | None, items: int | None
) -> "Answering":
    """Return what writes the answers.

    Args:
        target: opened.
        settings: of the answers.
        remote: the server, if there is one.
        batch: answers at once, if said.
        items: how many there will be, if that is known.
    """
    from outrider.train.remote import RemoteWriter, Server
    from outrider.train.writer import Limits, Writer

    at_once = target.batch(batch)
    if target.decoder is None:
        server = Server(url=str(remote.server), model=remote.server_model, at_once=at_once)
        return RemoteWriter(
            server,
            target.tokenizer,
            max_tokens=settings.max_tokens,
            top_k=settings.top_k,
            top_p=settings.top_p,
            thinking=settings.thinking,
        )
    limits = Limits(
        max_len=settings.max_len, max_tokens=settings.max_tokens, stop_ids=frozenset(target.tokenizer.stop_ids)
    )
    return Writer(
        target.decoder, batch=min(at_once, items or at_once), limits=limits, top_k=settings.top_k, top_p=settings.top_p
    )
