"""What speaks against a pair on an engine before it is started: files and versions, no GPU, no server."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from outrider.adapters.start import STARTERS, Deployment, Starter, offered, told_missing
from outrider.adapters.start.deployment import WHOLE_BLOCK
from outrider.commands.drafter_facts import DrafterFacts, drafter_facts, named_target
from outrider.doctor.evidence import Evidence
from outrider.doctor.examine import examine
from outrider.doctor.intake import gather
from outrider.doctor.known import concerning
from outrider.doctor.observation import Observation
from outrider.errors import CheckpointError, OutriderError

_SINCE = re.compile(r"(\d[\d.]*) or later")
MOST_DEFECTS = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """The models, as they were named: our own names find files that are here."""

    target: str
    drafter: str | None


@dataclass(frozen=True, slots=True)
class Objection:
    """One thing against a deployment.

    Attributes:
        said: what, with its reason.
        refuses: it would not work, or not as it was meant; else it is worth a warning.
    """

    said: str
    refuses: bool


def objections(
    engine: str, version: str | None, pair: Pair, deployment: Deployment, command: str
) -> tuple[list[Objection], Evidence]:
    """Return what speaks against a deployment, and the evidence that was gathered.

    Args:
        engine: by the table's name.
        version: the engine's; None where it is not known.
        pair: the models as they were named.
        deployment: what is to be started.
        command: by which.
    """
    starter = STARTERS[engine]
    found = [*_missing(starter, version, deployment), *_files(engine, deployment)]
    found += _pair(starter, version, pair, deployment)
    evidence, told = _evidence(engine, version, pair, command)
    if deployment.draft is not None:
        found += [Objection(one, refuses=False) for one in told]
        found += _doctor(evidence)
    return list({one.said: one for one in reversed(found)}.values())[::-1], evidence


def _missing(starter: Starter, version: str | None, deployment: Deployment) -> Iterator[Objection]:
    draft = deployment.draft
    if draft is None:
        return
    offer = offered(starter.offers, draft.method, version)
    if offer is None:
        yield Objection(told_missing(starter.title, starter.offers, draft.method, version), refuses=True)
    elif version is not None and _before(version, starter.checked[0]):
        oldest = starter.checked[0]
        yield Objection(f"{starter.title} {version} is older than {oldest}, the oldest looked at.", refuses=False)


def _files(engine: str, deployment: Deployment) -> Iterator[Objection]:
    """llama.cpp reads GGUF files and nothing else."""
    if engine != "llama.cpp":
        return
    if not deployment.target.lower().endswith(".gguf"):
        yield Objection(f"llama.cpp reads GGUF files, and the target is {deployment.target}.", refuses=True)
    model = deployment.draft.model if deployment.draft else None
    if model is not None and not model.lower().endswith(".gguf"):
        said = f"llama.cpp reads GGUF files, and the drafter is {model}: convert it with convert_hf_to_gguf.py."
        yield Objection(said, refuses=True)


def _pair(starter: Starter, version: str | None, pair: Pair, deployment: Deployment) -> Iterator[Objection]:
    draft = deployment.draft
    if draft is None or pair.drafter is None or draft.method not in WHOLE_BLOCK:
        return
    try:
        facts = _facts(pair.drafter, pair.target)
    except OutriderError as error:
        yield Objection(str(error), refuses=False)
        return
    for problem in facts.problems:
        fatal = problem.of == "pair" or not problem.can_be_allowed
        yield Objection(f"{problem.key}: {problem.message}", refuses=fatal)
    if facts.shape is not None and draft.tokens > facts.shape.tokens:
        most = facts.shape.tokens
        yield Objection(f"{draft.tokens} tokens are drafted by a drafter that was trained for {most}.", refuses=False)
    yield from _advised(facts, starter, version)


def _facts(drafter: str, target: str) -> DrafterFacts:
    from outrider.checkpoint import open_checkpoint, resolve
    from outrider.models.dflash.formats import examine as examine_drafter

    found = examine_drafter(resolve(drafter))
    try:
        named = named_target(target, open_checkpoint(resolve(target), weights=False).config)
    except CheckpointError:
        named = None
    return drafter_facts(drafter, found, target=named)


def _advised(facts: DrafterFacts, starter: Starter, version: str | None) -> Iterator[Objection]:
    advice = next((one for one in facts.engines if one.engine == starter.title), None)
    if advice is None:
        return
    for line in advice.differs:
        yield Objection(f"{starter.title}: {line}", refuses=not advice.command)
    for line in advice.needs:
        since = _SINCE.match(line)
        if since and version is not None and _before(version, since.group(1)):
            yield Objection(f"{starter.title} {version}; the drafter needs {line}", refuses=False)


def _evidence(engine: str, version: str | None, pair: Pair, command: str) -> tuple[Evidence, tuple[str, ...]]:
    try:
        known = gather(commands=[command], drafter=pair.drafter, target=pair.target)
    except OutriderError as error:
        return Evidence(schema=1), (str(error),)
    facts = known.evidence.engine.model_copy(update={"name": engine, "version": version})
    return known.evidence.model_copy(update={"engine": facts}), known.warnings


def _doctor(evidence: Evidence) -> Iterator[Objection]:
    """What the doctor takes for likely from files alone, and the defects of this version that they speak of."""
    for finding in examine(evidence).findings:
        if finding.standing in ("confirmed", "likely"):
            said = f"{finding.code} {finding.cause.replace('_', ' ')} is {finding.standing}: {finding.evidence[0]}"
            yield Objection(said, refuses=finding.standing == "confirmed")
    defects = concerning(Observation(evidence))
    for defect in defects[:MOST_DEFECTS]:
        said = f"known defect {defect.id}: {defect.effect}; fixed: {defect.fix} ({defect.reference})"
        yield Objection(said, refuses=False)
    if len(defects) > MOST_DEFECTS:
        more = len(defects) - MOST_DEFECTS
        yield Objection(f"{more} more known defects of this version concern such a pair.", refuses=False)


def _before(version: str, since: str) -> bool:
    try:
        return Version(version.lstrip("vb")) < Version(since.lstrip("vb"))
    except InvalidVersion:
        return False
