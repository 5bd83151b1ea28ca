"""Worker: Outrider's embedded engine with one drafter."""

import argparse

import torch

import outrider
from outrider.bench.arm import Generate, serve
from outrider.bench.protocol import Answer, Request
from outrider.runner import load as load_outrider

STEP = 256  # the cache takes its memory at once and, as on the command line, is as long as the requests need


def load(name: str, drafter: str, dtype: str) -> tuple[dict[str, str], Generate]:
    """Load the target with its drafter."""
    runner = load_outrider(name, drafter=drafter, dtype=dtype, max_len=STEP)
    about = {
        "engine": "outrider",
        "version": outrider.__version__,
        "dtype": dtype,
        "drafter": drafter,
        "threads": str(torch.get_num_threads()),
    }

    def generate(request: Request) -> Answer:
        nonlocal runner
        needed = len(request.prompt_ids) + request.max_tokens
        if needed > runner.max_len:
            runner = runner.resized(-(-needed // STEP) * STEP)
        found = runner.generate(request.prompt_ids, max_tokens=request.max_tokens, ignore_eos=True)
        return Answer(
            tokens=list(found.tokens),
            seconds=found.prefill_seconds + found.decode_seconds,
            prefill_seconds=found.prefill_seconds + found.round_seconds[0],
            step_seconds=list(found.round_seconds[1:]),
            rounds=len(found.rounds),
            accepted=sum(r.accepted for r in found.rounds),
        )

    return about, generate


def main() -> None:
    """Serve one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32")
    parser.add_argument("--drafter", default="none")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    serve(lambda: load(arguments.model, arguments.drafter, arguments.dtype))


if __name__ == "__main__":
    main()
