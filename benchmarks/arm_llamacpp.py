"""Worker: llama.cpp through xllamacpp's in-process server, plain greedy decoding.

llama.cpp cannot go on past an end token: it never picks one instead, so a text that would end may
part from the other arms' there. The file's types decide what is computed; see ``gguf_float.py``.
"""

import argparse
import json
from time import perf_counter
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import xllamacpp

from outrider.bench.arm import Generate, serve
from outrider.bench.protocol import Answer, Request


def load(path: str, threads: int, context: int) -> tuple[dict[str, str], Generate]:
    """Start the server on a free port of this machine's loopback."""
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # Read the weights into memory: a mapped file counts, or not, by the state of the page cache.
    params.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
    params.verbosity = -1
    server = xllamacpp.Server(params)
    about = {
        "engine": "llama.cpp",
        "version": f"xllamacpp {xllamacpp.__version__}",
        "kv cache": "float16",
        "threads": str(threads),
    }

    def generate(request: Request) -> Answer:
        start = perf_counter()
        found = _complete(server.listening_address, request)
        return Answer(
            tokens=found["tokens"],
            seconds=perf_counter() - start,
            prefill_seconds=found["timings"]["prompt_ms"] / 1e3,
            rounds=request.max_tokens - 1,
            accepted=0,
        )

    return about, generate


def _complete(address: str, request: Request) -> Any:
    body = {
        "prompt": request.prompt_ids,
        "n_predict": request.max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_tokens": True,
        "cache_prompt": False,
    }
    headers = {"Content-Type": "application/json"}
    url = f"{address}/completion"
    call = HttpRequest(url, json.dumps(body).encode(), headers)  # noqa: S310  # loopback
    with urlopen(call) as reply:  # noqa: S310  # loopback
        return json.load(reply)


def main() -> None:
    """Serve one model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--context", type=int, default=4096)
    arguments = parser.parse_args()
    serve(lambda: load(arguments.model, arguments.threads, arguments.context))


if __name__ == "__main__":
    main()
