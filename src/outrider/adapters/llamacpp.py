"""llama.cpp's server: ``--metrics``, ``/props``, the line at the end of a request; old and new spellings."""

import re
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, ClassVar

from outrider.adapters.adapter import Logged, Part, compact
from outrider.adapters.counts import Counts
from outrider.adapters.intervals import Interval, pooled
from outrider.adapters.launch import Launch
from outrider.adapters.lines import excerpt, failure, numbers
from outrider.adapters.methods import method_of
from outrider.adapters.metrics import Samples, positions

USUAL_DRAFT = 3  # tokens a round where nothing is said, since the options are called --spec-draft-*
_ACCEPTED = re.compile(
    r"draft acceptance(?: rate)? = +(?P<rate>[\d.]+) \( *(?P<accepted>\d+) accepted */ *(?P<drafted>\d+) generated\)"
    r"(?:, mean (?:len|acceptance length) = +(?P<length>[\d.]+))?"
    r"(?:, acceptance rate per position = \((?P<positions>[\d., ]+)\))?"
)
_POSITIONS = re.compile(r"acc per pos = +\((?P<positions>[\d., ]+)\)")
_MARKED = re.compile(r"draft acceptance")
_BUILD = re.compile(r"build(?:_info)?: +(?P<build>b?\d{3,6})\b")
_MODEL = re.compile(r"load(?:_model|ing)?:.*?(?:model|draft model) '(?P<path>[^']+)'")
_SPEED = re.compile(r"\beval time = .*?(?P<speed>[\d.]+) tokens per second")
_IMPLEMENTATION = re.compile(r"adding speculative implementation '([\w-]+)'")
_MOST = re.compile(r"n_max ?= ?(\d+)")
_ORDINARY = re.compile(
    r"speculative implementation|extract_layers|n_extract|block_size=|control.looking token|special_eos|embedded Jinja|"
    r"llama_model_loader|print_info|load_tensors|tokenizer|set_abort|warming up|unused tensor|-?verbos"
)


class LlamaCpp:
    """Adapter of llama.cpp's server."""

    name: ClassVar[str] = "llama.cpp"
    prefix: ClassVar[str] = "llamacpp:"
    programs: ClassVar[re.Pattern[str]] = re.compile(
        r"llama[-_.](server|cli|cpp)|llama\.cpp|--spec-type|--draft-max", re.IGNORECASE
    )
    marks: ClassVar[re.Pattern[str]] = re.compile(
        r"llama_|draft acceptance|\bslot +\w|\bsrv +\w|ggml_|speculative implementation"
    )
    pages: ClassVar[tuple[str, ...]] = ("/props", "/v1/models", "/slots")

    def counts(self, samples: Samples) -> Counts:
        """Counters are cumulative and without the bonus token; rounds without a draft are not counted."""
        spec = "llamacpp:spec_decode_num_"
        return Counts(
            rounds=samples.total(f"{spec}drafts_total"),
            drafted=samples.total(f"{spec}draft_tokens_total"),
            accepted=samples.total(f"{spec}accepted_tokens_total"),
            per_position=positions(samples.by_label(f"{spec}accepted_tokens_per_pos_total", "position")),
            generated=samples.total("llamacpp:tokens_predicted_total"),
            prompted=samples.total("llamacpp:prompt_tokens_total"),
            running=samples.total("llamacpp:requests_processing"),
        )

    def facts(self, pages: Mapping[str, Any]) -> Part:
        """Build and model; whether slots speculate, and how much, where ``/slots`` is open."""
        props = page if isinstance(page := pages.get("/props"), Mapping) else {}
        slots = page if isinstance(page := pages.get("/slots"), list) else []
        slot = slots[0] if slots and isinstance(slots[0], Mapping) else {}
        params = slot.get("params") if isinstance(slot.get("params"), Mapping) else {}
        most = params.get("speculative.n_max") if isinstance(params, Mapping) else None
        build = props.get("build_info")
        settings = {
            "total_slots": props.get("total_slots"),
            "speculative": slot.get("speculative"),
        }
        return compact(
            {
                "engine": {"version": str(build) if build else None, "settings": settings},
                "target": {"name": props.get("model_path")},
                "speculation": {
                    "num_speculative_tokens": most if isinstance(most, int) and slot.get("speculative") else None
                },
            }
        )

    def command(self, launch: Launch) -> Part:
        """``llama-server -m TARGET -md DRAFTER --spec-type draft-dflash --spec-draft-n-max 15``."""
        draft = launch.get("md", "model_draft", "spec_draft_model", "hfd", "hf_repo_draft", "spec_draft_hf")
        kind = launch.get("spec_type")
        method = method_of(kind, draft) or ("draft_model" if draft else None)
        most = launch.number("spec_draft_n_max", "draft_max", "draft", "draft_n")
        cache = {"cache_type_k": launch.get("ctk", "cache_type_k"), "cache_type_v": launch.get("ctv", "cache_type_v")}
        return compact(
            {
                "method": None if kind == "none" else method,
                "engine": {"settings": launch.settings() | cache},
                "target": {"name": launch.get("m", "model", "hf", "hfr", "hf_repo")},
                "drafter": {"name": draft},
                "speculation": {"num_speculative_tokens": most or (USUAL_DRAFT if kind and kind != "none" else None)},
            }
        )

    def log(self, lines: Sequence[str]) -> Logged:
        """Pool the requests; read what was loaded."""
        text = "\n".join(lines)
        requests, unread = _requests(lines)
        kind, most, build = _IMPLEMENTATION.search(text), _MOST.search(text), _BUILD.search(text)
        speeds = [float(found["speed"]) for line in lines if (found := _SPEED.search(line)) and "prompt" not in line]
        paths = [found["path"] for line in lines if (found := _MODEL.search(line))]
        part = pooled(requests, [])
        part["counters"]["tokens_per_second"] = fmean(speeds) if speeds else None
        part |= {
            "method": method_of(kind.group(1)) if kind else None,
            "engine": {"version": build["build"] if build else None},
            "target": {"name": paths[0] if paths else None},
            "drafter": {"name": paths[1] if len(paths) > 1 else None},
            "speculation": {"num_speculative_tokens": int(most.group(1)) if kind and most else None},
            "error": failure(lines),
            "log": excerpt(lines, _ORDINARY),
        }
        return Logged(compact(part), unread)


def _requests(lines: Sequence[str]) -> tuple[list[Interval], int]:
    """One interval a request; the positions stand on its line or, in newer builds, on one of their own before it."""
    found: list[Interval] = []
    unread = 0
    listed: tuple[float, ...] = ()
    for line in lines:
        if match := _POSITIONS.search(line):
            listed = tuple(numbers(match["positions"]))
        elif match := _ACCEPTED.search(line):
            own = tuple(numbers(match["positions"])) if match["positions"] else listed
            length = float(match["length"]) if match["length"] else None
            found.append(
                Interval(
                    accepted=float(match["accepted"]), drafted=float(match["drafted"]), length=length, per_position=own
                )
            )
            listed = ()
        elif _MARKED.search(line):
            unread += 1
    return found, unread
