"""vLLM: counters and formulas of ``vllm/v1/spec_decode/metrics.py``, log lines and options of 0.19 to 0.33."""

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from outrider.adapters.adapter import Logged, Part, compact
from outrider.adapters.counts import Counts
from outrider.adapters.intervals import Interval, pooled
from outrider.adapters.launch import Launch, as_json
from outrider.adapters.lines import excerpt, failure, numbers
from outrider.adapters.methods import method_of
from outrider.adapters.metrics import Samples, positions

_INTERVAL = re.compile(r"SpecDecoding metrics:(?P<body>.*)$")
_VALUES = {
    "length": re.compile(r"Mean acceptance length: ([\d.]+)"),
    "accepted": re.compile(r"Accepted: (\d+) tokens"),
    "drafted": re.compile(r"Drafted: (\d+) tokens"),
}
_PER_POSITION = re.compile(r"Per-position acceptance rate: ([\d., ]*\d)")
_RUNNING = re.compile(
    r"Avg generation throughput: (?P<speed>[\d.]+) tokens/s, Running: (?P<running>\d+) req.*?"
    r"(?:Prefix cache hit rate: (?P<hits>[\d.]+)%)?$"
)
_ARGUMENTS = re.compile(r"non-default args: (\{.*)$")
_VERSION = re.compile(r"(?:LLM engine \(v|vLLM (?:API server )?version v?)([\w.+-]+)")
_TAPS = re.compile(r"Using (?:Eagle3 )?auxiliary layers from [\w ]+: [(\[]([\d, ]+)[)\]]")
_TAG = re.compile(r":v?(\d[\w.+-]*)$")
_ORDINARY = re.compile(
    r"ulimit|Enforce eager set|Inductor compilation was disabled|max_num_scheduled_tokens is set|Triton|LD_PRELOAD|"
    r"Detected (EAGLE|MTP) model|won't work with speculative decoding|FutureWarning|DeprecationWarning|OMP_NUM_THREADS|"
    r"Model Runner V2 requires|Resolved architecture|Overriding draft model max model len|Loading drafter model|"
    r"auxiliary layers from|Default vLLM sampling parameters|[Uu]sage stat|max_position_embeddings|TORCH_CUDA_ARCH|"
    r"Reset SSM cache type|\[shutdown\]|skipped remainder"
)
_OWN = {"model", "model_tag", "quantization", "speculative_config", "sc"}


class Vllm:
    """Adapter of vLLM."""

    name: ClassVar[str] = "vllm"
    prefix: ClassVar[str] = "vllm:"
    programs: ClassVar[re.Pattern[str]] = re.compile(r"\bvllm\b|vllm/vllm-openai", re.IGNORECASE)
    marks: ClassVar[re.Pattern[str]] = re.compile(
        r"SpecDecoding metrics|LLM engine \(v|\bvllm\b|EngineCore|\[loggers\.py|non-default args"
    )
    pages: ClassVar[tuple[str, ...]] = ("/version", "/v1/models", "/server_info?config_format=json")

    def counts(self, samples: Samples) -> Counts:
        """Counters are cumulative and without the bonus token; engines of one server are summed."""
        spec = "vllm:spec_decode_num_"
        return Counts(
            rounds=samples.total(f"{spec}drafts_total"),
            drafted=samples.total(f"{spec}draft_tokens_total"),
            accepted=samples.total(f"{spec}accepted_tokens_total"),
            per_position=positions(samples.by_label(f"{spec}accepted_tokens_per_pos_total", "position")),
            generated=samples.total("vllm:generation_tokens_total"),
            prompted=samples.total("vllm:prompt_tokens_total"),
            finished=samples.total("vllm:request_success_total"),
            looked_up=samples.total("vllm:prefix_cache_queries_total"),
            cached=samples.total("vllm:prefix_cache_hits_total"),
            running=samples.total("vllm:num_requests_running"),
            model=samples.label("vllm:num_requests_running", "model_name"),
        )

    def facts(self, pages: Mapping[str, Any]) -> Part:
        """Version and model; the settings where the server tells them (development mode only)."""
        version, model = _page(pages, "/version").get("version"), _first_model(_page(pages, "/v1/models"))
        settings = _page(pages, self.pages[2]).get("vllm_config")
        config = settings if isinstance(settings, Mapping) else {}
        named = config.get("model_config")
        target = named.get("model") if isinstance(named, Mapping) else None
        speculation = config.get("speculative_config")
        found = _speculation(speculation if isinstance(speculation, Mapping) else {})
        return compact({"engine": {"version": version}, "target": {"name": target or model}} | found)

    def command(self, launch: Launch) -> Part:
        """``vllm serve MODEL ...``, ``python -m vllm.entrypoints.openai.api_server --model ...`` or a container."""
        given = launch.settings()
        settings = {key: value for key, value in given.items() if key not in _OWN and "." not in key}
        tag = _TAG.search(launch.image or "")
        config = as_json(launch.get("speculative_config", "sc"))
        dotted = {
            key.split(".", 1)[1]: value
            for key, value in given.items() if key.startswith(("speculative_config.", "sc."))
        }  # fmt: skip
        speculation = {**(config if isinstance(config, Mapping) else {}), **dotted}
        return compact(
            {
                "engine": {
                    "version": tag.group(1) if tag else None,
                    "settings": settings,
                },
                "target": {
                    "name": launch.get("model") or launch.after("serve"),
                    "quantisation": launch.get("quantization", "q"),
                },
            }
            | _speculation(speculation)
        )

    def log(self, lines: Sequence[str]) -> Logged:
        """Pool the periodic lines; read what was said at the start."""
        text = "\n".join(lines)
        intervals, unread = _intervals(lines)
        started = _started(lines)
        version, taps = _VERSION.search(text), _TAPS.search(text)
        settings = dict(started.get("engine", {}).get("settings", {}))
        if taps:
            settings["auxiliary_layers"] = [int(word) for word in taps.group(1).split(",") if word.strip()]
        part = started | {
            "engine": {"version": version.group(1) if version else None, "settings": settings},
            "error": failure(lines),
            "log": excerpt(lines, _ORDINARY),
        } | pooled(intervals, _running(lines))  # fmt: skip
        return Logged(compact(part), unread)


def _page(pages: Mapping[str, Any], address: str) -> Mapping[str, Any]:
    found = pages.get(address)
    return found if isinstance(found, Mapping) else {}


def _first_model(page: Mapping[str, Any]) -> str | None:
    try:
        first = page["data"][0]
        return str(first.get("root") or first["id"])
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def _speculation(config: Mapping[str, Any]) -> Part:
    """Read ``--speculative-config``, whose draft model may imply the method."""
    if not config:
        return {}
    count, model = config.get("num_speculative_tokens"), config.get("model")
    method = method_of(config.get("method"), model)
    rest = {key: value for key, value in config.items() if key not in ("method", "model", "num_speculative_tokens")}
    return {
        "method": method or ("other" if config.get("method") else "draft_model" if model else None),
        "drafter": {"name": model if method != "mtp" else None, "quantisation": config.get("quantization")},
        "speculation": {"num_speculative_tokens": count if isinstance(count, int) else None, "settings": rest},
    }


def _started(lines: Sequence[str]) -> Part:
    """Read the options that the server prints when it starts."""
    for line in lines:
        if found := _ARGUMENTS.search(line):
            arguments = _literal(found.group(1))
            config = arguments.get("speculative_config")
            settings = {key: value for key, value in arguments.items() if key not in _OWN}
            target = {
                "name": arguments.get("model_tag") or arguments.get("model"),
                "quantisation": arguments.get("quantization"),
            }
            return {"engine": {"settings": settings}, "target": target} | _speculation(
                config if isinstance(config, Mapping) else {}
            )
    return {}


def _literal(text: str) -> dict[str, Any]:
    """Read a dictionary as Python prints it; one that is cut off or holds objects is not read."""
    try:
        found = ast.literal_eval(text[: text.rindex("}") + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _intervals(lines: Sequence[str]) -> tuple[list[Interval], int]:
    found: list[Interval] = []
    unread = 0
    for line in lines:
        if not (match := _INTERVAL.search(line)):
            continue
        if (interval := _interval(match["body"])) is None:
            unread += 1
        else:
            found.append(interval)
    return found, unread


def _interval(body: str) -> Interval | None:
    values = {name: pattern.search(body) for name, pattern in _VALUES.items()}
    accepted, drafted, length = (values[name] for name in ("accepted", "drafted", "length"))
    if accepted is None or drafted is None:
        return None
    listed = _PER_POSITION.search(body)
    return Interval(
        accepted=float(accepted.group(1)),
        drafted=float(drafted.group(1)),
        length=float(length.group(1)) if length else None,
        per_position=tuple(numbers(listed.group(1))) if listed else (),
    )


def _running(lines: Sequence[str]) -> list[tuple[float, float, float | None]]:
    """Speed, requests at work and hit rate (0..1) of the intervals in which something was written."""
    found = [match for line in lines if (match := _RUNNING.search(line))]
    return [
        (float(m["speed"]), float(m["running"]), float(m["hits"]) / 100 if m["hits"] else None)
        for m in found if float(m["speed"]) > 0
    ]  # fmt: skip
