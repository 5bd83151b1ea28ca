"""Model files from the Hugging Face hub, through its own library, cache and progress bars.

The hub is asked once, with a deadline; when it does not answer, a complete copy in the cache is
used. Knows nothing of what the files mean.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from outrider.checkpoint.cache import is_full
from outrider.checkpoint.hub_errors import explain

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

T = TypeVar("T")

PATTERNS = [
    *("*.json", "*.safetensors", "*.jinja", "tokenizer*", "merges.txt", "vocab.txt"),
    *("mask_embedding.pt", "README.md"),  # of drafters: a vector of their own, and what they were trained on
]
HEADERS = ["config.json", "generation_config.json", "README.md"]
# Second copies of the weights in another layout, and exports for other engines.
UNWANTED = ["consolidated*", "original/*", "onnx/*", "metal/*"]
ANSWER_S = 4.0
SHAPES_S = 20.0  # of a model in many shards: a header each


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the hub said of a repository: its files, or why it said nothing."""

    files: tuple["RepoSibling", ...] = ()
    problem: Exception | None = None


def fetch_snapshot(repo: str) -> tuple[Path, str]:
    """Return the folder of ``repo``'s newest snapshot and its commit, downloading what is missing.

    Raises:
        FetchError: not reachable and not cached, gated, unknown, no space, or broken off.
    """
    from huggingface_hub import snapshot_download

    answer = _ask(repo)
    folder = _download(
        lambda: snapshot_download(
            repo,
            allow_patterns=PATTERNS,
            ignore_patterns=UNWANTED,
            local_files_only=answer.problem is not None,
        ),
        repo,
        answer,
        needed=sum(file.size or 0 for file in answer.files if _is_wanted(file.rfilename)),
    )
    return Path(folder), Path(folder).name


def fetch_headers(repo: str) -> tuple[Path, dict[str, tuple[int, ...]]]:
    """Return a folder with ``repo``'s small files and the shapes of its tensors, without downloading weights.

    Shapes come from the headers on the hub; they are empty where only the cache answers, or where it holds no
    safetensors.

    Raises:
        FetchError: as for `fetch_snapshot`.
    """
    from huggingface_hub import HfApi, snapshot_download

    answer = _ask(repo)
    folder = _download(
        lambda: snapshot_download(
            repo,
            allow_patterns=HEADERS,
            ignore_patterns=UNWANTED,
            local_files_only=answer.problem is not None,
        ),
        repo,
        answer,
        needed=sum(f.size or 0 for f in answer.files if any(fnmatch(f.rfilename, p) for p in HEADERS)),
    )
    if not any(file.rfilename.endswith(".safetensors") for file in answer.files):
        return Path(folder), {}
    found = _within(SHAPES_S, lambda: HfApi().get_safetensors_metadata(repo))
    parts = found.files_metadata.values()
    return Path(folder), {name: tuple(info.shape) for part in parts for name, info in part.tensors.items()}


def _is_wanted(name: str) -> bool:
    allowed = any(fnmatch(name, pattern) for pattern in PATTERNS)
    return allowed and not any(fnmatch(name, pattern) for pattern in UNWANTED)


def fetch_gguf(repo: str, file_name: str) -> tuple[Path, str]:
    """Return one file of ``repo`` and the commit it belongs to, downloading it if needed.

    Raises:
        FetchError: as for `fetch_snapshot`, or the repository has no such file.
    """
    from huggingface_hub import hf_hub_download

    answer = _ask(repo)
    path = _download(
        lambda: hf_hub_download(repo, file_name, local_files_only=answer.problem is not None),
        repo,
        answer,
        needed=sum(file.size or 0 for file in answer.files if file.rfilename == file_name),
    )
    # The library's layout: <cache>/models--owner--name/snapshots/<commit>/<file_name>.
    depth = len(Path(file_name).parts)
    return Path(path), Path(path).parents[depth - 1].name


def _ask(repo: str) -> _Answer:
    from huggingface_hub import HfApi

    try:
        info = _within(ANSWER_S, lambda: HfApi().model_info(repo, files_metadata=True, timeout=ANSWER_S))
    except Exception as problem:  # noqa: BLE001 - three libraries raise here; explain() sorts them
        return _Answer(problem=problem)
    return _Answer(files=tuple(info.siblings or ()))


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """Return ``ask()`` or raise TimeoutError.

    A connection's own limit counts anew for every address of a host and leaves out the look-up of
    its name, which together can take minutes behind a firewall. The thread is left to itself.
    """
    results: SimpleQueue[T | Exception] = SimpleQueue()

    def work() -> None:
        try:
            results.put(ask())
        except Exception as error:  # noqa: BLE001 - handed to the caller's thread whole
            results.put(error)

    Thread(target=work, daemon=True).start()
    try:
        result = results.get(timeout=2 * seconds)
    except Empty:
        raise TimeoutError(f"no answer within {2 * seconds:.0f} s") from None
    if isinstance(result, Exception):
        raise result
    return result


def _download(get: Callable[[], str], repo: str, answer: _Answer, *, needed: int) -> str:
    try:
        return get()
    except Exception as error:
        if is_full(error):
            _remove_partial(repo)
            raise explain(error, repo, needed=needed) from error
        cause = answer.problem or error
        raise explain(cause, repo, started=answer.problem is None) from error


def _remove_partial(repo: str) -> None:
    """Remove what the broken download left: on a full disk it is in the way of all else."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"
    for partial in folder.glob("blobs/*.incomplete"):
        partial.unlink(missing_ok=True)
