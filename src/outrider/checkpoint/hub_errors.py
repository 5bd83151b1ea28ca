"""What went wrong at the hub, in one line that says what to do.

Knows the exceptions of huggingface_hub, of the HTTP library under it and of the operating system.
Knows nothing of what was asked for beyond the repository's name.
"""

from pathlib import Path

from outrider.checkpoint.cache import is_full, no_space
from outrider.checkpoint.cached import hub_models
from outrider.errors import FetchError

UNAUTHORIZED = 401
FIRST_SERVER_FAULT = 500
SHOWN_MODELS = 5


def explain(error: Exception, repo: str, *, needed: int = 0, started: bool = False) -> FetchError:
    """Return the `FetchError` for ``error``.

    Args:
        error: what a library raised.
        repo: ``owner/name``.
        needed: bytes that the download takes, where known.
        started: the hub had answered before, so the transfer broke off.
    """
    from huggingface_hub import constants

    if is_full(error):
        return no_space(Path(constants.HF_HUB_CACHE), needed)
    refusal = _refusal(error, repo)
    if refusal is not None:
        return FetchError(refusal)
    if _is_network(error):
        return FetchError(_broken_off(repo) if started else _unreachable(repo, error))
    return FetchError(f"Fetching {repo} from the hub failed: {_brief(error)}.")


def _refusal(error: Exception, repo: str) -> str | None:
    """Return the line for an answer that a second try would not change."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return (
            f"{repo} is gated: request access on the model's page at the hub, then run "
            "'hf auth login' or set HF_TOKEN, and try again."
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            f"The hub has no model {repo}, or it is private. Check the spelling (owner/name); for "
            "a private one run 'hf auth login' or set HF_TOKEN."
        )
    if isinstance(error, errors.RemoteEntryNotFoundError):
        return f"The hub's {repo} does not hold the file asked for: {_brief(error)}."
    if isinstance(error, errors.HFValidationError):
        return f"{repo!r} is no valid name on the hub. Expected owner/name."
    if isinstance(error, errors.HfHubHTTPError):
        return _status(error.response.status_code, repo)
    return None


def _status(status: int, repo: str) -> str:
    if status == UNAUTHORIZED:
        return f"The hub refused the token for {repo} (401): run 'hf auth login' or correct HF_TOKEN."
    if status >= FIRST_SERVER_FAULT:
        return f"The hub is out of order: it answered {status} for {repo}. Try again later."
    return f"The hub refused {repo} with status {status}. Try again later, or check HF_ENDPOINT."


def _is_network(error: Exception) -> bool:
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    # The root of the HTTP library's errors; which library that is depends on huggingface_hub's age.
    http_error = HfHubHTTPError.__bases__[0]
    network = (http_error, ConnectionError, TimeoutError, LocalEntryNotFoundError)
    return isinstance(error, network)


def _broken_off(repo: str) -> str:
    return (
        f"The download of {repo} broke off: the network failed. What arrived is kept; run the "
        "same command again to go on."
    )


def _unreachable(repo: str, error: Exception) -> str:
    from huggingface_hub.errors import OfflineModeIsEnabled

    offline = isinstance(error, OfflineModeIsEnabled)
    why = "HF_HUB_OFFLINE is set" if offline else f"no network: {_brief(error)}"
    names = [model.name for model in hub_models()]
    more = ", ..." if len(names) > SHOWN_MODELS else ""
    held = ", ".join(names[:SHOWN_MODELS]) + more if names else "nothing"
    return (
        f"The hub cannot be reached ({why}) and {repo} is not complete in its cache, which "
        f"holds {held}. Connect, use one of these, or give a local folder or GGUF file."
    )


def _brief(error: Exception) -> str:
    """Return the first line of the message, or the error's name if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
