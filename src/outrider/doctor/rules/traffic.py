"""Rules on what is asked: template, sampling, draft length, batch and model size."""

# ruff: noqa: PLR2004  a threshold stands in the sentence that it decides

from collections.abc import Iterator
from math import log

from outrider.doctor.observation import Observation
from outrider.doctor.rules.shape import MATERIAL, failure, healthy_acceptance, moved
from outrider.doctor.rules.signal import Signal
from outrider.doctor.rules.words import said


def chat_template_or_thinking(o: Observation) -> Iterator[Signal]:
    """Template or thinking mode differs from the drafter's training data."""
    yield from said("chat_template_or_thinking", o)
    yield from moved(o, "thinking", 3.0, "thinking mode decides")
    yield from moved(o, "template", 2.5, "the template decides")
    traffic = o.evidence.traffic
    if traffic.chat_template is False:
        yield Signal("no chat template is applied", 2.0, "setting")
    if traffic.thinking is True and not o.at("thinking"):
        yield Signal("thinking is on; many drafters saw none of it", 0.8, "setting")
    if o.reading.collapsed:
        yield Signal("another mode costs half, not everything", -1.2, "curve")
    if o.corrupt or (failure(o) and traffic.chat_template is None):
        yield Signal("this changes no text and raises no error", -1.5, "output")


def sampling(o: Observation) -> Iterator[Signal]:
    """Temperature, penalties or the verification method explain it."""
    yield from said("sampling", o)
    yield from moved(o, "sampling", 2.8, "sampling decides")
    traffic = o.evidence.traffic
    if traffic.temperature is not None and traffic.temperature >= 0.5:
        yield Signal(f"temperature {traffic.temperature:g}", 1.0, "setting")
    elif traffic.temperature == 0:
        yield Signal("greedy decoding", -1.2, "setting")
    if any(k.endswith("penalty") and v not in (0, 1, None) for k, v in traffic.sampling.items()):
        yield Signal("a penalty is set, which drafts do not see", 1.4, "setting")
    for signal in moved(o, "workload", 1.0, "acceptance depends on the kind of text"):
        if signal.weight > 0:
            yield signal
    if o.reading.nothing_accepted:
        yield Signal("sampling leaves something accepted", -1.5, "curve")
    if o.evidence.output.corrupt is True or failure(o):
        yield Signal("sampling corrupts nothing and raises no error", -1.5, "output")


def num_speculative_tokens(o: Observation) -> Iterator[Signal]:
    """Too many or too few tokens drafted a round."""
    yield from said("num_speculative_tokens", o)
    depth, drafted = o.facts.trained_depth, o.facts.drafted
    if depth is not None and drafted is not None and drafted > depth:
        yield Signal(f"{drafted} drafted of {depth} that were trained", 2.6 if drafted > depth + 1 else 1.6, "file")
    if depth is not None and drafted is not None and drafted * 2 < depth and not o.reading.collapsed:
        yield Signal(f"{drafted} drafted where {depth} were trained", 1.0, "file")
    yield from _tail(o)
    yield from _draft_length(o)
    if o.corrupt or o.reading.nothing_accepted:
        yield Signal("a draft length changes no text and leaves the first positions", -1.5, "output")


def _tail(o: Observation) -> Iterator[Signal]:
    positions, rate, drafted = o.reading.positions, o.reading.rate, o.facts.drafted
    if len(positions) >= 5 and positions[0] > 0.5 and positions[-1] < 0.1:
        yield Signal(f"the last position is kept in {positions[-1]:.0%} of rounds", 0.8, "curve")
    if rate is not None and drafted and drafted >= 5 and rate < 0.3 and (o.reading.tau or 0) > 1.8:
        yield Signal(f"of {drafted} drafted tokens {rate:.0%} are kept, {1 + rate * drafted:.1f} a round", 0.8, "curve")


def _draft_length(o: Observation) -> Iterator[Signal]:
    for contrast in o.at("drafted"):
        values = contrast.number(r"num_speculative|n_max|draft|^k$")
        if values is None or values[0] == values[1] or len(contrast.dimensions) > 1:
            continue
        shorter = values[1] < values[0]
        gain = contrast.speed
        if gain is not None and (gain > 1.05 if shorter else gain < 0.95):
            size = abs(log(gain)) / log(1.3)
            yield Signal(f"a shorter draft is faster ({contrast.told})", 1.0 + min(1.5, size), "contrast")
            return
        longer_is_better = (
            contrast.length is not None and (contrast.length if shorter else 1 / contrast.length) > MATERIAL
        )
        if longer_is_better:
            yield Signal(f"a shorter draft keeps more tokens a round ({contrast.told})", 1.8, "contrast")
            return


def batch_or_model_size_no_gain(o: Observation) -> Iterator[Signal]:
    """Acceptance is fine, and speculation cannot pay at this batch or model size."""
    yield from said("batch_or_model_size_no_gain", o)
    gain = o.reading.speedup
    if gain is not None and gain < 1.25:
        fine = healthy_acceptance(o) or not o.reading.measured
        yield Signal(f"{gain:.2f} times the speed of plain decoding", 1.8 if fine else 0.6, "speed")
    elif gain is not None:
        yield Signal(f"it gains {gain:.2f} times", -1.5, "speed")
    if o.facts.sparse and (gain is not None or not o.reading.measured):
        yield Signal("a sparse target reads few weights a token, so a wide pass costs more", 0.9, "file")
    concurrency = o.evidence.traffic.concurrency
    if concurrency is not None and concurrency >= 16:
        yield Signal(f"{concurrency:.0f} requests at once", 0.9, "setting")
    yield from _gain_falls(o)
    if any((c.speed or 1) > 1.4 for c in o.at("drafted")):
        yield Signal("another draft length does pay", -0.8, "contrast")
    if o.reading.low or (o.share is not None and o.share < 0.8):
        yield Signal("acceptance itself is low", -2.0, "curve")
    if o.corrupt or failure(o):
        yield Signal("the trouble is not speed", -2.5, "output")


def _gain_falls(o: Observation) -> Iterator[Signal]:
    for contrast in o.at("concurrency"):
        gains = contrast.base.speedup, contrast.other.speedup
        if gains[0] and gains[1] and abs(gains[0] - gains[1]) > 0.15:
            yield Signal(f"the gain moves with {contrast.told}", 1.5, "contrast")
            return
