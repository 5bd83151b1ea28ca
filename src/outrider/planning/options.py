"""The ways there are to decode a target on some hardware, each with what it should give and what it risks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from outrider.adapters.methods import Method
from outrider.adapters.start import STARTERS, Deployment, Draft, Parallel, offered, told_missing
from outrider.doctor.evidence import Evidence
from outrider.doctor.known import concerning
from outrider.doctor.observation import Observation
from outrider.planning.expected import Expected, as_tree, published
from outrider.planning.hardware import Device
from outrider.planning.result import Figure, PlanOption
from outrider.planning.sizes import DrafterSizes, Sizes
from outrider.planning.traffic import ERROR, MS, Drafting, Load, RoundTime, overhead_source, round_time
from outrider.registry import FAMILIES

GIB = 2**30
SPARE = 0.9  # of a device's memory that an engine takes
TREE_NODES = 64
COLLAPSED = 0.6  # of the published length: below, the drafter is not what was published
NAMED_DEFECTS = 2
Effort = Literal["minutes", "hours", "days"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is planned for.

    Attributes:
        target: as it is named.
        size: what its passes read.
        device: one of those there are.
        load: context, sequences at once, devices.
        drafter: a block drafter, where one is known.
        versions: of the engines that come into question.
        measured: acceptance lengths that were measured, by whoever asks.
        speeds: tokens a second that were measured, by engine and method.
    """

    target: str
    size: Sizes
    device: Device
    load: Load
    drafter: DrafterSizes | None
    versions: Mapping[str, str | None]
    measured: Sequence[Expected] = ()
    speeds: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Way:
    """A method with an acceptance length, before it is on an engine."""

    name: str
    method: Method | None
    nodes: int
    expected: Expected
    effort: Effort
    risk: str = ""


def ways(s: Situation) -> Iterator[Way]:
    """Yield plain decoding and what can be drafted with."""
    yield Way(
        "plain decoding",
        None,
        0,
        Expected(method="other", tokens=0, low=1, high=1, how="modelled", source=""),
        "minutes",
    )
    if s.size.mtp and (heads := _expected(s, "mtp")):
        yield Way("the target's own MTP heads", "mtp", heads.tokens or 3, heads, "minutes")
    if s.drafter is not None:
        yield from _with_drafter(s, s.drafter)
    if look_up := _expected(s, "ngram"):
        yield Way("n-grams of the text", "ngram", look_up.tokens or 5, look_up, "minutes", "Pays on text that repeats.")


def _with_drafter(s: Situation, drafter: DrafterSizes) -> Iterator[Way]:
    told, seen = published(s.target, "dflash"), _seen(s, "dflash")
    short = seen is not None and told is not None and seen.high < COLLAPSED * told.low
    if seen is not None:
        risk = "Far below what was published: outrider doctor, outrider repair first." if short else ""
        yield Way("the DFlash drafter as it is", "dflash", drafter.tokens, seen, "minutes", risk)
    if told is not None and (seen is None or short):
        name = "the DFlash drafter, mended or finished" if short else "a DFlash drafter"
        risk = "Only if what is wrong is found, or training ends." if short else _unseen(told)
        told = replace(told, high=min(told.high, drafter.tokens + 1))
        yield Way(name, "dflash", drafter.tokens, told, "days" if short else "minutes", risk)
    chain = told if short or seen is None else seen
    if chain is not None:
        tree = _seen(s, "ddtree") or as_tree(chain)
        yield Way(f"a tree of {TREE_NODES} (DDTree) over it", "ddtree", TREE_NODES, tree, "days" if short else "hours")


def _unseen(told: Expected) -> str:
    return "Published for another target: measure it." if told.foreign else "Published, not seen here."


def _seen(s: Situation, method: Method) -> Expected | None:
    return next((one for one in s.measured if one.method == method), None)


def _expected(s: Situation, method: Method) -> Expected | None:
    return _seen(s, method) or published(s.target, method)


def options(s: Situation) -> tuple[list[PlanOption], list[str], float | None]:
    """Return the options, the fastest first; what was left out, and why; measured over modelled round time."""
    scale = _scale(s)
    found, left_out = [], []
    for way in ways(s):
        for engine, version in s.versions.items():
            one = STARTERS[engine]
            if s.load.devices > 1 and not one.serves:
                left_out.append(f"{one.title}'s own engine runs on one device.")
            elif way.method is not None and offered(one.offers, way.method, version) is None:
                left_out.append(told_missing(one.title, one.offers, way.method, version))
            else:
                found.append(_option(s, way, engine, scale))
    found.sort(key=lambda one: -one.tokens_per_second.value)
    return found, list(dict.fromkeys(left_out)), scale


def _round(s: Situation, way: Way, engine: str) -> RoundTime:
    block = s.drafter if way.method in ("dflash", "ddtree") else None
    drafting = Drafting(method=way.method, nodes=way.nodes, drafter=block)
    return round_time(s.size, s.device, s.load, drafting, engine=engine)


def _scale(s: Situation) -> float | None:
    """Return by how much a measured speed says that rounds are longer than modelled: of the first that was given."""
    for (engine, method), speed in s.speeds.items():
        way = next((one for one in ways(s) if (one.method or "plain") == method and engine in s.versions), None)
        if way is not None:
            tau = (way.expected.low + way.expected.high) / 2
            return s.load.batch * tau / speed / _round(s, way, engine).total
    return None


def _option(s: Situation, way: Way, engine: str, scale: float | None) -> PlanOption:
    version, one = s.versions[engine], STARTERS[engine]
    tau = _figure(way.expected)
    lasts = _lasts(s, way, engine, scale, tau)
    plain = replace(way, method=None, nodes=0)
    memory = _memory(s, way)
    draft = None if way.method is None else Draft(way.method, _model(s, way), _drafted(s, way))
    deployment = Deployment(
        target=s.target,
        draft=draft,
        parallel=Parallel(tensor=s.load.devices if one.serves else 1),
        hybrid=s.size.hybrid,
    )
    return PlanOption(
        name=f"{way.name}, {one.title}",
        engine=engine,
        version=version,
        method=way.method or "plain",
        tokens_per_round=tau,
        round_ms=lasts,
        tokens_per_second=_speed(s, way, engine, tau, lasts),
        break_even=round(lasts.value * MS / (_round(s, plain, engine).total * (scale or 1)), 3),
        memory_gib=round(memory / GIB, 1),
        fits=memory <= SPARE * s.device.memory * s.load.devices,
        effort=way.effort,
        risks=_risks(s, way, engine),
        command=one.command(deployment).text,
    )


def _figure(expected: Expected) -> Figure:
    low, high = expected.low, expected.high
    return Figure(value=(low + high) / 2, low=low, high=high, how=expected.how, source=expected.source)


def _lasts(s: Situation, way: Way, engine: str, scale: float | None, tau: Figure) -> Figure:
    """Milliseconds of a round: measured where a speed was, else modelled."""
    speed = s.speeds.get((engine, way.method or "plain"))
    if speed is not None:
        rounds = [s.load.batch * length / speed / MS for length in (tau.value, tau.low, tau.high)]
        source = "tokens a round over the measured tokens a second"
        return Figure(
            value=rounds[0],
            low=rounds[1],
            high=rounds[2],
            how="measured" if tau.how == "measured" else "modelled",
            source=source,
        )
    value = _round(s, way, engine).total / MS * (scale or 1)
    source = f"memory traffic; {overhead_source(engine)}" + (f"; times {scale:.2f}, as measured" if scale else "")
    return Figure(value=value, low=value * (1 - ERROR), high=value * (1 + ERROR), how="modelled", source=source)


def _speed(s: Situation, way: Way, engine: str, tau: Figure, lasts: Figure) -> Figure:
    speed = s.speeds.get((engine, way.method or "plain"))
    if speed is not None:
        return Figure(value=speed, low=speed, high=speed, how="measured", source="given by --speed")
    each = s.load.batch / MS
    return Figure(
        value=each * tau.value / lasts.value,
        low=each * tau.low / lasts.high,
        high=each * tau.high / lasts.low,
        how="modelled",
        source="tokens a round over the time of a round",
    )


def _memory(s: Situation, way: Way) -> float:
    size, load = s.size, s.load
    nodes = way.nodes if way.method else 0
    cached = load.batch * (size.kv * load.context + size.state * (2 + nodes if size.hybrid else 0))
    if way.method == "mtp":
        return size.resident + size.mtp + cached
    if s.drafter is not None and way.method in ("dflash", "ddtree"):
        return size.resident + s.drafter.weights + cached + load.batch * s.drafter.kv * load.context
    return size.resident + cached


def _model(s: Situation, way: Way) -> str | None:
    return s.drafter.name if s.drafter is not None and way.method in ("dflash", "ddtree") else None


def _drafted(s: Situation, way: Way) -> int:
    return s.drafter.tokens if s.drafter is not None and way.method == "ddtree" else way.nodes


def _risks(s: Situation, way: Way, engine: str) -> list[str]:
    version, one = s.versions[engine], STARTERS[engine]
    found = [way.risk] if way.risk else []
    if engine == "outrider" and s.size.kind and s.size.kind not in FAMILIES:
        found.append(f"The embedded engine does not run {s.size.kind} targets in this version.")
    if way.method is None:
        return found
    parts = {
        "schema": 1, "method": "dflash" if way.method == "ddtree" else way.method,
        "engine": {"name": engine, "version": version}, "target": {"name": s.target, "hybrid": s.size.hybrid},
        "drafter": {"config": s.drafter.config if s.drafter is not None and way.method == "dflash" else {}},
    }  # fmt: skip
    defects = concerning(Observation(Evidence.model_validate(parts))) if one.serves else []
    if defects:
        named = "; ".join(f"{defect.effect} ({defect.reference})" for defect in defects[:NAMED_DEFECTS])
        many = "a known defect" if len(defects) == 1 else f"{len(defects)} known defects"
        found.append(f"{many} of {one.title} {version} with such a target: {named}")
    return found
