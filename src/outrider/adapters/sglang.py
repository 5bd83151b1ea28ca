"""SGLang: gauges, ``/server_info`` and the scheduler's line, as 0.5.10 to 0.5.23 have them.

``accept len`` counts the bonus token, ``accept rate`` does not; both are of the last window.
"""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any, ClassVar

from outrider.adapters.adapter import Logged, Part, compact
from outrider.adapters.counts import Counts
from outrider.adapters.launch import Launch
from outrider.adapters.lines import excerpt, failure
from outrider.adapters.methods import method_of
from outrider.adapters.metrics import Samples

_DECODE = re.compile(r"Decode batch\b.*")
_VALUES = {
    "running": re.compile(r"#running-req: (\d+)"),
    "length": re.compile(r"accept len: ([\d.]+)"),
    "rate": re.compile(r"accept rate: ([\d.]+)"),
    "speed": re.compile(r"gen throughput \(token/s\): ([\d.]+)"),
}
_ARGUMENTS = re.compile(r"server_args=ServerArgs\((.*)")
_ARGUMENT = re.compile(r"(\w+)=('(?:[^'\\]|\\.)*'|[\w.+-]+)")
_TAG = re.compile(r":v?(\d[\w.]*)")
_ORDINARY = re.compile(r"FutureWarning|DeprecationWarning|UserWarning|Resolved architecture")
_ANCHORED = frozenset({"dflash", "dflash2", "dspark", "mtp", "eagle", "eagle3", "draft_model"})
"""Methods whose number of draft tokens counts the token that is verified along."""


class SGLang:
    """Adapter of SGLang."""

    name: ClassVar[str] = "sglang"
    prefix: ClassVar[str] = "sglang:"
    programs: ClassVar[re.Pattern[str]] = re.compile(r"\bsglang\b|lmsysorg/sglang", re.IGNORECASE)
    marks: ClassVar[re.Pattern[str]] = re.compile(r"Decode batch|Prefill batch|\bsglang\b|server_args=")
    pages: ClassVar[tuple[str, ...]] = ("/server_info", "/get_server_info", "/v1/models")

    def counts(self, samples: Samples) -> Counts:
        """Lengths and rates are gauges of the last window; only verification calls are counted."""
        return Counts(
            length=_positive(samples.mean("sglang:spec_accept_length")),
            rate=_positive(samples.mean("sglang:spec_accept_rate")),
            generated=samples.total("sglang:generation_tokens_total"),
            prompted=samples.total("sglang:prompt_tokens_total"),
            finished=samples.total("sglang:num_requests_total"),
            hit_rate=samples.mean("sglang:cache_hit_rate"),
            running=samples.total("sglang:num_running_reqs"),
            model=samples.label("sglang:num_running_reqs", "model_name"),
        )

    def facts(self, pages: Mapping[str, Any]) -> Part:
        """Resolved arguments, and the length over the server's life."""
        info = next((page for a in self.pages[:2] if isinstance(page := pages.get(a), Mapping)), {})
        part = _arguments(info)
        states = info.get("internal_states")
        lengths = [
            float(state["avg_spec_accept_length"])
            for state in states if isinstance(state, Mapping)
            and isinstance(state.get("avg_spec_accept_length"), int | float)
        ] if isinstance(states, list) else []  # fmt: skip
        engine = part.get("engine", {}) | {"version": info.get("version"), "command": info.get("launch_command")}
        counters = {"mean_acceptance_length": fmean(lengths) if lengths else None}
        return compact(part | {"engine": engine, "counters": counters})

    def command(self, launch: Launch) -> Part:
        """``sglang serve`` or ``python -m sglang.launch_server``."""
        tag = _TAG.search((launch.image or "").rpartition("/")[2])
        part = _arguments(launch.settings() | {"model_path": launch.get("model_path", "model")})
        engine = part["engine"] | {"version": tag.group(1) if tag else None}
        return compact(part | {"engine": engine})

    def log(self, lines: Sequence[str]) -> Logged:
        """Average the scheduler's lines by the requests at work; read the arguments at the start."""
        rows, unread = _rows(lines)
        busy = [row for row in rows if row.get("running", 0) > 0]
        started = next((found.group(1) for line in lines if (found := _ARGUMENTS.search(line))), "")
        part = _arguments({key: _value(text) for key, text in _ARGUMENT.findall(started)})
        counters = {
            "mean_acceptance_length": _weighted(busy, "length"),
            "acceptance_rate": _weighted(busy, "rate"),
            "tokens_per_second": fmean(speeds) if (speeds := [r["speed"] for r in busy if "speed" in r]) else None,
        }
        traffic = {"concurrency": median(row["running"] for row in busy) if busy else None}
        part |= {"counters": counters, "traffic": traffic, "error": failure(lines), "log": excerpt(lines, _ORDINARY)}
        return Logged(compact(part), unread)


def _positive(value: float | None) -> float | None:
    return value or None


def _arguments(given: Mapping[str, Any]) -> Part:
    """Read the server's arguments, whoever tells them."""
    draft = given.get("speculative_draft_model_path") or given.get("speculative_draft_model")
    method = _method(given.get("speculative_algorithm"), draft)
    count = _whole(given.get("speculative_num_draft_tokens") or given.get("speculative_dflash_block_size"))
    steps = _whole(given.get("speculative_num_steps"))
    drafted = count - 1 if count and method in _ANCHORED else count
    chain = str(given.get("speculative_eagle_topk") or 1) == "1"
    settings = {key: value for key, value in given.items() if isinstance(value, str | int | float | bool)}
    named = {key for key in settings if key.startswith(("speculative_draft_model_path", "model_path"))}
    return {
        "method": method,
        "engine": {"settings": {key: value for key, value in settings.items() if key not in named}},
        "target": {"name": given.get("model_path"), "quantisation": given.get("quantization")},
        "drafter": {"name": draft, "quantisation": given.get("speculative_draft_model_quantization")},
        "speculation": {"num_speculative_tokens": drafted if chain else steps or drafted},
    }


def _method(algorithm: object, draft: object) -> str | None:
    """``EAGLE`` without a draft model runs the heads in the target's own checkpoint."""
    method = method_of(algorithm)
    return "mtp" if method == "eagle" and not draft else method


def _whole(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() else None


def _value(text: str) -> Any:
    if text.startswith("'"):
        return text[1:-1]
    return {"None": None, "True": True, "False": False}.get(text, text)


def _rows(lines: Sequence[str]) -> tuple[list[dict[str, float]], int]:
    rows: list[dict[str, float]] = []
    unread = 0
    for line in lines:
        if found := _DECODE.search(line):
            row = {name: float(m.group(1)) for name, p in _VALUES.items() if (m := p.search(found.group(0)))}
            unread += "running" not in row
            rows.append(row)
    return rows, unread


def _weighted(rows: Sequence[Mapping[str, float]], name: str) -> float | None:
    """Mean by requests at work: a window holds the same number of iterations, each with so many rounds."""
    told = [(row["running"], row[name]) for row in rows if name in row]
    total = sum(weight for weight, _ in told)
    return sum(weight * value for weight, value in told) / total if total else None
