"""``python -m benchmarks.launch_commands vllm``: commands of every method and spread, for the engine's own parser.

python -m benchmarks.launch_commands vllm | VLLM_ENV/bin/python benchmarks/parse_commands.py vllm
"""

import sys
from collections.abc import Iterator

from outrider.adapters.start import STARTERS, Deployment, Draft, Parallel

TARGET, DRAFTER = "Qwen/Qwen3.6-27B", "z-lab/Qwen3.6-27B-DFlash"
SPREADS = (
    Parallel(tensor=8),
    Parallel(data=4),
    Parallel(tensor=8, pipeline=2, hosts=("a", "b")),
    Parallel(tensor=16, hosts=("a", "b"), rank=1),
)
OF_VLLM = (
    Parallel(tensor=8, pipeline=2, hosts=("a", "b"), form="ray"),
    Parallel(data=4, hosts=("a", "b"), rank=1),
)


def main() -> None:
    """Print them."""
    engine = sys.argv[1]
    for deployment in _deployments(engine):
        print(STARTERS[engine].command(deployment).text)


def _deployments(engine: str) -> Iterator[Deployment]:
    kv = {"vllm": "fp8", "sglang": "fp8_e4m3"}[engine]
    for offer in STARTERS[engine].offers:
        draft = Draft(offer.method, DRAFTER, 3 if offer.method == "mtp" else 15)
        yield Deployment(target=TARGET, draft=draft, hybrid=True, metrics=True, port=8000)
    yield Deployment(target=TARGET, quantisation="fp8", kv_dtype=kv, max_len=4096, host="127.0.0.1")
    for parallel in (*SPREADS, *(OF_VLLM if engine == "vllm" else ())):
        yield Deployment(target=TARGET, parallel=parallel)


if __name__ == "__main__":
    main()
