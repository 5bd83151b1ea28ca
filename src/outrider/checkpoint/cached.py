"""Which models are on this disk already, in our cache and in the hub's.

Only looks; fetches and removes nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from outrider.checkpoint.known import KNOWN
from outrider.checkpoint.shipped import SHIPPED, shipped_folder

if TYPE_CHECKING:
    from huggingface_hub import CachedRepoInfo, CachedRevisionInfo


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model that needs no network: the name that finds it, where it is, and its size."""

    name: str
    path: Path
    origin: str
    size_bytes: int


def list_cached() -> list[CachedModel]:
    """Return every model that can be opened without a network, known names first."""
    return [*_packages(), *_shipped(), *hub_models()]


def _packages() -> list[CachedModel]:
    from outrider.checkpoint.package import cached_file

    found = []
    for name, model in KNOWN.items():
        path = cached_file(model.package)
        if path is not None:
            found.append(CachedModel(name, path, model.package.origin, model.package.size))
    return found


def _shipped() -> list[CachedModel]:
    found = []
    for name, target in SHIPPED.items():
        path = shipped_folder(name)
        size = sum(file.stat().st_size for file in path.iterdir())
        found.append(CachedModel(name, path, f"shipped with outrider, drafts for {target}", size))
    return found


def hub_models() -> list[CachedModel]:
    """Return the models in the hub's own cache, by name."""
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except CacheNotFound:
        return []
    models = (_newest(repo) for repo in repos if repo.repo_type == "model" and repo.revisions)
    return sorted((model for found in models for model in found), key=lambda model: model.name)


def _newest(repo: "CachedRepoInfo") -> list[CachedModel]:
    """Return what the repository's newest snapshot offers: a folder, or single GGUF files."""
    revision = max(repo.revisions, key=lambda one: one.last_modified)
    origin = f"hub {repo.repo_id}@{revision.commit_hash}"
    if any(file.file_name == "config.json" for file in revision.files):
        path = revision.snapshot_path
        return [CachedModel(repo.repo_id, path, origin, revision.size_on_disk)]
    return _ggufs(repo.repo_id, revision, origin)


def _ggufs(repo: str, revision: "CachedRevisionInfo", origin: str) -> list[CachedModel]:
    found = []
    for file in revision.files:
        if file.file_name.lower().endswith(".gguf"):
            inside = file.file_path.relative_to(revision.snapshot_path).as_posix()
            name = f"{repo}/{inside}"
            found.append(CachedModel(name, file.file_path, f"{origin} {inside}", file.size_on_disk))
    return found
