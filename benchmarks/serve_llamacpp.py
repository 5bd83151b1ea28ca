"""Worker: llama.cpp through xllamacpp, with a DFlash drafter, until it is killed.

Arguments: model, draft, port, threads.

Runs in its own environment, so it imports nothing of ours.
"""

import signal
import sys

import xllamacpp

DRAFTED = 7


def main() -> None:
    """Serve."""
    model, draft, port, threads = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames, params.port = ["127.0.0.1"], int(port)
    params.n_ctx, params.n_parallel = 2048, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
    params.speculative.draft.mparams.path = draft
    params.speculative.draft.n_max = DRAFTED
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH]
    server = xllamacpp.Server(params)
    print("listening", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
