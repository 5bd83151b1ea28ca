"""A worker that sleeps instead of decoding; its first argument says how it behaves."""

# ruff: noqa: T201  # printing is what is tested

import sys
import time

from outrider.bench.arm import serve
from outrider.bench.protocol import Answer

behaviour, step = sys.argv[1], float(sys.argv[2])


def load():
    if behaviour == "dies-loading":
        print("out of luck", file=sys.stderr)
        sys.exit(3)
    if behaviour == "hangs":
        time.sleep(60)
    print("the engine chatters on stdout")
    return {"engine": f"fake {behaviour}"}, generate


held = []


def generate(request):
    if behaviour == "dies":
        print("first\nthe last word", file=sys.stderr)
        sys.exit(4)
    if behaviour == "grows":
        held.append(b"x" * 2**26)
    if behaviour == "short":
        request = request.model_copy(update={"max_tokens": request.max_tokens - 1})
    start = time.perf_counter()
    time.sleep(step * request.max_tokens)
    tokens = [sum(request.prompt_ids) + i for i in range(request.max_tokens)]
    if behaviour == "differs":
        tokens[-1] = -1
    print(f"{behaviour} {request.prompt_ids}", file=sys.stderr)
    return Answer(
        tokens=tokens,
        seconds=time.perf_counter() - start,
        prefill_seconds=0.0,
        step_seconds=[step] * request.max_tokens,
        rounds=request.max_tokens // 2,
        accepted=request.max_tokens // 2,
    )


if behaviour == "rubbish":
    print("Hello, I am no message")
    time.sleep(60)
serve(load)
