"""``outrider.load``: a model's name in, a runner out.

The one place that joins files, text, target, drafter and engine.
"""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Ordered
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, cast

import torch

from outrider.checkpoint.checkpoint import Checkpoint, open_checkpoint
from outrider.checkpoint.source import resolve as find
from outrider.drafters.options import DraftOptions
from outrider.drafters.setting import Setting
from outrider.engine.engine import Engine
from outrider.engine.interfaces import Drafter
from outrider.engine.params import SamplingParams
from outrider.errors import UsageError
from outrider.models.decoder import Decoder
from outrider.models.dflash.formats import read_drafter
from outrider.models.dflash.loading import load_dflash
from outrider.models.dflash.network import DFlash
from outrider.models.loading import load_decoder, named
from outrider.models.mtp import MTP, load_mtp
from outrider.registry import DRAFTERS, resolve
from outrider.results import DraftingResult
from outrider.text.tokenizer import Tokenizer, load_tokenizer
from outrider.transcript import Completion, Stream, Transcript

if TYPE_CHECKING:
    from outrider.engine.costs import Costs

Prompt = str | Ordered[int] | Ordered[Mapping[str, Any]]
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
MAX_LEN = 2048  # unless said otherwise; the cache takes its memory at once


def _silent(_line: str) -> None:
    pass


def load(
    model: str,
    *,
    drafter: str = "none",
    draft_model: str | None = None,
    draft: DraftOptions = DraftOptions(),  # noqa: B008 -- frozen
    dtype: str = "auto",
    device: str = "auto",
    slots: int = 1,
    max_len: int | None = None,
    weights: Literal["real", "dummy"] = "real",
    report: Callable[[str], None] = _silent,
) -> "Runner":
    """Load a model and a drafter.

    Args:
        model: a folder, a GGUF file, a name this version knows (``smollm2-135m``) or ``owner/name`` on the hub.
        drafter: a name of the table of drafters; see ``docs/drafters.md``.
        draft_model: of drafters that have weights: a folder, a GGUF file or ``owner/name`` on the hub.
        draft: settings of drafting.
        dtype: of the weights, the draft model's too: float32, float16 (on a CPU with fp32 sums), bfloat16; auto is
            float32 on a CPU and bfloat16 on a GPU.
        device: cpu, cuda, ...; auto takes a GPU if there is one.
        slots: sequences that run at once.
        max_len: longest sequence in tokens, prompt and output together.
        weights: dummy takes random ones of the same shapes.
        report: is told, line by line, what takes long.

    Raises:
        OutriderError: with what was expected, what was found, where, and what to do.
    """
    resolve("drafter", DRAFTERS, drafter)  # an unknown name is said before anything is loaded
    place = _device(device)
    kind = _dtype(dtype, place)
    for name, value in (("slots", slots), ("max_len", MAX_LEN if max_len is None else max_len)):
        if value < 1:
            raise UsageError(f"{name}={value}: expected a whole number of at least 1.")
    checkpoint = open_checkpoint(find(model, report=report), weights=weights == "real")
    target = load_decoder(checkpoint, dtype=kind, device=place, dummy=weights == "dummy")
    loaded = Loaded(
        checkpoint,
        target,
        load_tokenizer(checkpoint),
        None if draft_model is None else _load_network(draft_model, target, draft, weights=weights, report=report),
        draft_model,
        draft,
        cache(partial(load_mtp, named(checkpoint), target, dummy=weights == "dummy")),
    )
    longest = min(max_len or MAX_LEN, target.shape.max_positions)
    return Runner(loaded, drafter, slots=slots, max_len=longest)


def _load_network(
    draft_model: str,
    target: Decoder,
    draft: DraftOptions,
    *,
    weights: Literal["real", "dummy"],
    report: Callable[[str], None],
) -> DFlash:
    drafter = read_drafter(find(draft_model, report=report), allow=draft.allow)
    return load_dflash(drafter, target, dummy=weights == "dummy")


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise _unusable(name) from None
    if device.type not in {"cpu", "cuda"}:
        raise _unusable(name)
    return device


def _unusable(device: str) -> UsageError:
    return UsageError(f"Device {device!r} is not usable here; expected cpu, or cuda where PyTorch sees a GPU.")


def _dtype(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name not in DTYPES:
        raise UsageError(f"Unknown dtype {name!r}; expected auto, {', '.join(DTYPES)}.")
    return DTYPES[name]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What takes long to load and is shared by the runners over it.

    Attributes:
        checkpoint: the model's headers and where they came from.
        network: the draft model, if there is one.
        draft_model: its name, as it was given.
        draft: settings of drafting.
        heads: reads the multi-token prediction heads that came with the model, at the first call.
    """

    checkpoint: Checkpoint
    target: Decoder
    tokenizer: Tokenizer
    network: DFlash | None
    draft_model: str | None
    draft: DraftOptions
    heads: Callable[[], MTP] | None = None

    @property
    def drafting(self) -> DraftingResult | None:
        """What results say of the draft model."""
        if self.draft_model is None:
            return None
        return DraftingResult(model=self.draft_model, options=asdict(self.draft))


class Runner:
    """A loaded model: text in, text out.

    Args:
        loaded: target, tokenizer, draft model.
        drafter: a name of the table of drafters.
        slots: sequences at once.
        max_len: longest sequence.
        costs: what passes cost; learnt anew if not given.
    """

    def __init__(self, loaded: Loaded, drafter: str, *, slots: int, max_len: int, costs: "Costs | None" = None) -> None:
        self.loaded = loaded
        self.checkpoint, self.target, self.tokenizer = loaded.checkpoint, loaded.target, loaded.tokenizer
        self.slots, self.max_len = slots, max_len
        setting = Setting(slots, max_len, loaded.network, loaded.draft, loaded.heads)
        self.drafter: Drafter = resolve("drafter", DRAFTERS, drafter).build(setting)
        self._live: dict[int, Transcript] = {}
        self.engine = Engine(
            self.target,
            self.drafter,
            slots=slots,
            max_len=max_len,
            device=self.target.device,
            costs=costs,
            on_device=self.target.device.type == "cuda",
        )

    def with_drafter(self, drafter: str, *, costs: "Costs | None" = None) -> "Runner":
        """Return a runner over the same target and draft model with another drafter."""
        return Runner(self.loaded, drafter, slots=self.slots, max_len=self.max_len, costs=costs)

    def resized(self, max_len: int) -> "Runner":
        """Return a runner over the same models for sequences of another length; it knows what passes cost."""
        return Runner(self.loaded, self.drafter.name, slots=self.slots, max_len=max_len, costs=self.engine.costs)

    def encode(self, prompt: Prompt) -> tuple[int, ...]:
        """Turn a text, a chat (``role`` and ``content`` each) or token ids into token ids."""
        if isinstance(prompt, str):
            return tuple(self.tokenizer.encode(prompt, add_special=True))
        if prompt and isinstance(prompt[0], Mapping):
            return tuple(self.tokenizer.encode(self._render(prompt), add_special=False))
        return tuple(cast("Ordered[int]", prompt))

    def _render(self, messages: Any) -> str:
        from outrider.text.chat import render_chat

        tokenizer = self.tokenizer
        return render_chat(
            tokenizer.chat_template,
            messages,
            bos_token=tokenizer.bos_token,
            eos_token=tokenizer.eos_token,
        )

    def generate(self, prompt: Prompt, params: SamplingParams | None = None, **settings: Any) -> Completion:
        """Complete a prompt.

        Args:
            prompt: text, chat or token ids.
            params: sampling settings; or give them as keywords (``temperature=0.7, max_tokens=100``).
            settings: fields of ``SamplingParams``.
        """
        return self.generate_many([prompt], params, **settings)[0]

    def generate_many(
        self, prompts: Ordered[Prompt], params: SamplingParams | None = None, **settings: Any
    ) -> list[Completion]:
        """Complete many prompts, as many at once as there are slots; in the order given."""
        checked = _params(params, settings)
        transcripts: list[Transcript] = []
        try:
            for prompt in prompts:
                transcripts.append(self.start(prompt, checked))  # noqa: PERF401 -- those begun must be known when one fails
            while any(not transcript.finished for transcript in transcripts):
                self.step()
        finally:  # a prompt that does not fit, an interrupt: nothing stays behind in the engine
            for transcript in transcripts:
                self.drop(transcript)
        return [transcript.completion() for transcript in transcripts]

    def stream(self, prompt: Prompt, params: SamplingParams | None = None, **settings: Any) -> Stream:
        """Complete a prompt piece by piece, one a token; who stops reading cancels the rest.

        ``stream.completion()`` is what was read, whole or cancelled.
        """
        transcript = self.start(prompt, _params(params, settings))
        return Stream(transcript, step=self.step, drop=self.drop)

    def drop(self, transcript: Transcript) -> None:
        """Cancel a text that has not ended, and forget it."""
        self.engine.cancel(transcript.sequence)
        self._live.pop(transcript.sequence.id, None)

    def step(self) -> None:
        """Run one engine step and hand each token to its text; several streams may be open at once."""
        for event in self.engine.step():
            transcript = self._live.get(event.sequence_id)
            if transcript is None:  # dropped in the middle of the step
                continue
            transcript.take(event)
            if event.finish_reason is not None:
                del self._live[event.sequence_id]

    def start(self, prompt: Prompt, params: SamplingParams, *, draft_depth: int | None = None) -> Transcript:
        """Queue a prompt; ``step`` until its transcript is finished, or ``drop`` it.

        Args:
            prompt: text, chat or token ids.
            params: sampling settings.
            draft_depth: deepest guess that may be drafted for it; 0 none at all, None as deep as the drafter likes.
        """
        transcript = Transcript(self.tokenizer, params.stop)
        transcript.sequence = self.engine.add(
            self.encode(prompt),
            params,
            stop_ids=self.tokenizer.stop_ids,
            watch=transcript.watch,
            draft_depth=draft_depth,
        )
        self._live[transcript.sequence.id] = transcript
        return transcript


def _params(params: SamplingParams | None, settings: dict[str, Any]) -> SamplingParams:
    if params is None:
        try:
            return SamplingParams(**settings)
        except TypeError:
            known = SamplingParams.__dataclass_fields__
            wrong = sorted(set(settings) - set(known))
            if not wrong:
                raise
            raise UsageError(f"Unknown sampling setting {wrong[0]!r}; expected one of {', '.join(known)}.") from None
    if settings:
        raise UsageError("Sampling settings were given twice, as params and as keywords; give one of them.")
    return params
