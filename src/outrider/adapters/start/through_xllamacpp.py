"""llama.cpp's server through the package xllamacpp, by the options of ``llama-server``, until it is told to end.

Runs in an environment of its own, so it imports nothing of this package.
"""

import argparse
import signal

import xllamacpp

TYPES = {
    name: getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{name.upper().replace('-', '_')}")
    for name in ("draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark", "ngram-simple")
}


def main() -> None:
    """Serve."""
    given = _parser().parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.hostnames, params.port = [given.host], given.port
    params.n_ctx, params.n_parallel = given.ctx_size, given.parallel
    if given.threads:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given.threads
    params.endpoint_metrics, params.endpoint_slots, params.endpoint_props = given.metrics, True, True
    if given.spec_type:
        params.speculative.types = [TYPES[given.spec_type]]
        params.speculative.draft.n_max = given.spec_draft_n_max
        # The n-gram look-up has a length of its own.
        params.speculative.ngram_simple.size_m = given.spec_draft_n_max
    if given.model_draft:
        params.speculative.draft.mparams.path = given.model_draft
    server = xllamacpp.Server(params)
    print("listening on", server.listening_address, flush=True)  # noqa: T201 -- it is the log
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llama-server (xllamacpp)", allow_abbrev=False)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-md", "--model-draft")
    parser.add_argument("--spec-type", choices=list(TYPES))
    parser.add_argument("--spec-draft-n-max", type=int, default=3)
    parser.add_argument("--ctx-size", type=int, default=4096)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--parallel", "-np", type=int, default=1)
    parser.add_argument("--threads", "-t", type=int)
    parser.add_argument("--metrics", action="store_true")
    return parser


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
