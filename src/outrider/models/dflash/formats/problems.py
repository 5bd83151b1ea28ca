"""What keeps a drafter from running as it was trained: all of it at once, each thing with its key and its cure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outrider.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Problem:
    """One contradiction, or one thing that is not understood.

    Attributes:
        key: of the config, or a name for what is no key; what ``--allow`` takes.
        message: what was expected, what was found, what to change.
        fatal: there is no way to run the drafter with it, so ``--allow`` does not help.
    """

    key: str
    message: str
    fatal: bool = False


def remaining(problems: Iterable[Problem], allow: Sequence[str]) -> tuple[Problem, ...]:
    """Return the problems that are not allowed, those that cannot be first."""
    left = [problem for problem in problems if problem.fatal or problem.key not in allow]
    return tuple(sorted(left, key=lambda problem: not problem.fatal))


def refuse(where: str, problems: Iterable[Problem], allow: Sequence[str]) -> None:
    """Raise one error that names all problems that are not allowed.

    Raises:
        CheckpointError: there are some.
    """
    left = remaining(problems, allow)
    if not left:
        return
    keys = list(dict.fromkeys(problem.key for problem in left if not problem.fatal))
    cure = f" To go on regardless: --allow {' --allow '.join(keys)}." if keys and not left[0].fatal else ""
    told = " ".join(f"{problem.key}: {problem.message}" for problem in left)
    raise CheckpointError(f"{where} is not run as a drafter. {told}{cure}")
