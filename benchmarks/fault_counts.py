"""``python -m benchmarks.fault_counts TARGET DRAFTER PROMPTS... --out FILE``: a pair's counts with each fault put in.

The target writes once. Each fault's counts are added to the file as they come: a run that is broken off goes on.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from outrider.checkpoint import resolve
from outrider.commands.compare import encode
from outrider.commands.prompts_file import read_rows
from outrider.doctor.ablation.counts import Counts
from outrider.doctor.ablation.fault import Fault
from outrider.doctor.ablation.faults import HEALTHY, usual_faults
from outrider.doctor.ablation.inject import Pair
from outrider.doctor.ablation.other_texts import BATCH, Asked, measure_batch, measure_retold
from outrider.doctor.ablation.retold import Retold, retold
from outrider.doctor.ablation.run import measure, pair_of
from outrider.models.dflash.formats import read_drafter
from outrider.provenance import provenance
from outrider.replay import Recording, record
from outrider.runner import load


def main() -> None:
    """Record, then measure what the file does not hold yet."""
    given = _parse()
    runner = load(given.target, dtype="float32", device=given.device)
    pair = pair_of(runner.target, read_drafter(resolve(given.drafter, report=print)))
    rows = [row for path in given.prompts for row in read_rows(path)]
    texts = [row.prompt for row in rows]
    asked = Asked(
        prompts=encode(runner, texts, chat=None), max_tokens=given.max_tokens, stop_ids=runner.tokenizer.stop_ids
    )
    found: dict[str, Any] = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {"counts": {}}
    for label, counted in _measures(pair, asked, *retold(runner.tokenizer, texts, asked.prompts)):
        if label not in found["counts"]:
            found["counts"][label] = _plain(counted())
            found["categories"] = [row.category for row in rows]
            found["prompt_tokens"] = list(map(len, asked.prompts))
            found["provenance"] = provenance(threads=torch.get_num_threads(), seed=0).model_dump()
            given.out.write_text(json.dumps(found) + "\n", encoding="utf-8")


def _measures(
    pair: Pair, asked: Asked, tellings: Sequence[Retold], missing: Sequence[str]
) -> Iterator[tuple[str, Callable[[], Counts]]]:
    """Yield the label of each measurement and what makes it; the target writes when the first of them is made."""
    recording = cache(
        lambda: record(pair.target, asked.prompts, max_tokens=asked.max_tokens, stop_ids=asked.stop_ids, report=print)
    )
    for fault in (HEALTHY, *usual_faults(pair.config, pair.target.shape.num_layers)):
        yield fault.label, partial(_measure, fault, pair, recording)
    for telling in tellings:
        yield telling.fault.label, partial(measure_retold, telling, pair, asked, print)
    yield BATCH.label, partial(measure_batch, pair, asked)
    print(*missing, sep="\n")


def _measure(fault: Fault, pair: Pair, recording: Callable[[], Recording]) -> Counts:
    return measure(fault, pair, recording(), print)


def _plain(counts: Counts) -> dict[str, Any]:
    return {"rounds": counts.rounds_X.astype(int).tolist(), "hits": counts.hits_XK.astype(int).tolist()}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("drafter")
    parser.add_argument("prompts", type=Path, nargs="+")
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
