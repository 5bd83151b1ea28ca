"""Takes out of evidence and verdict what is nobody else's business, and leaves what diagnosis needs.

Gone are secrets, addresses, hosts, users, and folders; model names, versions, commits and file names within packages
stay. A user or host that shows itself once (a home folder, an address) is taken out wherever it stands.
"""

import re
from collections.abc import Iterable, Iterator
from getpass import getuser
from ipaddress import ip_address
from itertools import pairwise
from socket import gethostname
from typing import Any

from outrider.doctor.evidence import Evidence
from outrider.doctor.verdict import Verdict

PUBLIC = ("github.com", "huggingface.co", "arxiv.org", "pypi.org", "docs.vllm.ai", "docs.sglang.ai", "hub.docker.com")
LOCAL = ("localhost", "127.0.0.1", "0.0.0.0", "::1", "::")  # noqa: S104 -- names that say nothing, not bound to
NOBODY = {"root", "user", "users", "home", "runner", "ubuntu", "nobody", "shared", "public", "default", "localhost"}
SHORTEST = 3  # letters of a name that is looked for everywhere
ENDPOINT = re.compile(r"/(v1|v2|metrics|health|props|slots|server_info|get_server_info|generate|version|dev)\b")

LABEL = (
    r"(?:api|access|auth|hf|secret|private|github|wandb)[-_]?(?:key|token)|passw(?:or)?d|passwd|secret|authorization"
)
IS_SECRET = re.compile(rf"(?:^|[-_])(?:{LABEL})$", re.IGNORECASE)
NAMED = re.compile(
    rf"""(?i)((?:{LABEL})["']?\s*[=:]\s*["']?(?:bearer\s+)?|--[\w-]*(?:{LABEL})\s+["']?|bearer\s+)[^\s"',;<]+"""
)
SHAPED = re.compile(
    r"\b(?:hf_|sk-|gh[pousr]_|github_pat_|xox[abp]-|glpat-|nvapi-|AKIA|AIza)[\w-]{8,}|\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?"
)
LONG = re.compile(r"\b\w{32,}\b")
HEX = re.compile(r"[0-9a-f]{32,40}")  # commits stay
TURNS = 6  # changes between letter and digit that no word has
URL = re.compile(
    r"""\b([a-z][a-z0-9+.-]*)://(?:[^\s/@"'<>]*@)?(\[[^\]\s]+\]|[^\s/:"'<>?#,;)]+)(:\d+)?([^\s"'<>,;)]*)""",
    re.IGNORECASE,
)
MAIL = re.compile(r"(?<![\w/.])([\w.+-]+)@(\[?[A-Za-z][\w.-]*)")
IPV4 = re.compile(r"(?<![\w.])(?<!==)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
IPV6 = re.compile(r"(?<![\w:])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
DOMAIN = re.compile(
    r"\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:local|internal|lan|corp|intranet|localdomain|com|org|net|edu|cloud)\b",
    re.IGNORECASE,
)
HOST_FLAG = re.compile(r"""(?i)((?:--host|\bhost(?:name)?["']?\s*[=:])\s*["']?)([\w.-]+)""")
WINDOWS = re.compile(r"""\b[A-Za-z]:[\\/](?:[^\\/\n"':*?<>|]+[\\/])*[^\s\\/"':*?<>|,;]*""")
UNIX = re.compile(r"""(?<![\w<>:/.~$}])(?:~[\w.-]*|\.{1,2})?/[^\s"'`:,;()<>|]+(?:/[^\s"'`:,;()<>|]+)*""")
USER = re.compile(r"""(?:/home/|/Users/|\\Users\\|/export/home/|/scratch/|~)([A-Za-z][\w.-]*)""")


def redact(evidence: Evidence, verdict: Verdict) -> tuple[Evidence, Verdict]:
    """Return both without what identifies people, machines and accounts."""
    found = [evidence.model_dump(by_alias=True), verdict.model_dump(by_alias=True)]
    texts = [text for one in found for text in _texts(one)]
    names = _names(texts)
    clean = [_walk(one, names) for one in found]
    return Evidence.model_validate(clean[0]), Verdict.model_validate(clean[1])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _names(texts: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds every user and host that shows itself somewhere, and this machine's own."""
    found = {gethostname(), _user()}
    for text in texts:
        found.update(USER.findall(text))
        for match in MAIL.finditer(text):
            found.update(match.groups())
        found.update(match[2] for match in URL.finditer(text) if not _public(match[2]))
        found.update(match[2] for match in HOST_FLAG.finditer(text))
    usable = {name for name in found if len(name) >= SHORTEST and name.lower() not in NOBODY and name not in LOCAL}
    usable = {name for name in usable if not _public(name) and not _plain_number(name)}
    if not usable:
        return None
    ordered = sorted(map(re.escape, usable), key=len, reverse=True)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(ordered)})(?![A-Za-z0-9])", re.IGNORECASE)


def _user() -> str:
    try:
        return getuser()
    except (OSError, KeyError, ImportError):  # no such user: in a container
        return ""


def _plain_number(name: str) -> bool:
    return not any(letter.isalpha() for letter in name) and not _is_address(name)


def _public(host: str) -> bool:
    return host.lower().removeprefix("www.") in PUBLIC or host.strip("[]") in LOCAL


def _walk(value: Any, names: re.Pattern[str] | None) -> Any:
    if isinstance(value, dict):
        return {
            scrub(str(key), names): "<secret>" if _secret(key, inner) else _walk(inner, names)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_walk(inner, names) for inner in value]
    return scrub(value, names) if isinstance(value, str) else value


def _secret(key: object, value: object) -> bool:
    return isinstance(value, str) and IS_SECRET.search(str(key)) is not None


def scrub(text: str, names: re.Pattern[str] | None = None) -> str:
    """Return a text without what identifies; ``names`` finds more that is to go."""
    text = NAMED.sub(r"\1<secret>", text)
    text = SHAPED.sub("<secret>", text)
    text = LONG.sub(_long, text)
    text = URL.sub(_url, text)
    text = MAIL.sub("<user>@<host>", text)
    text = HOST_FLAG.sub(lambda match: match[0] if _public(match[2]) else f"{match[1]}<host>", text)
    text = WINDOWS.sub(_path, text)
    text = UNIX.sub(_path, text)
    text = IPV4.sub(_address, text)
    text = IPV6.sub(_address, text)
    text = DOMAIN.sub(lambda match: match[0] if _public(match[0]) else "<host>", text)
    return text if names is None else names.sub("<name>", text)


def _long(match: re.Match[str]) -> str:
    word = match[0]
    turns = sum(a.isdigit() != b.isdigit() for a, b in pairwise(word))
    return word if HEX.fullmatch(word) or turns < TURNS else "<secret>"


def _url(match: re.Match[str]) -> str:
    scheme, host, port, rest = match.groups()
    if not _public(host):
        return f"{scheme}://<host>{port or ''}"
    return f"{scheme}://{host}{port or ''}{rest.partition('?')[0]}"


def _address(match: re.Match[str]) -> str:
    return "<address>" if _is_address(match[0]) and match[0] not in LOCAL else match[0]


def _is_address(text: str) -> bool:
    try:
        ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True


def _path(match: re.Match[str]) -> str:
    """Keep a file's place within a package, and the last part of a path that is not a user's own folder."""
    path = match[0].replace("\\", "/")
    if ENDPOINT.match(path) or not path.strip("./~"):
        return match[0]
    for packages in ("site-packages/", "dist-packages/"):
        if packages in path:
            return f"<path>/{path.partition(packages)[2]}"
    parts = [part for part in path.split("/") if part not in ("", ".", "..", "~")]
    own = len(parts) < 2 or parts[-2].lower() in ("home", "users", "scratch")  # noqa: PLR2004 -- a folder and its place
    return "<path>" if own else f"<path>/{parts[-1]}"
