"""Starts SGLang: options of 0.5.23; which methods there are was looked up in 0.5.10, .11, .14, .16, .18, .20, .23."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from outrider.adapters.start.deployment import (
    DRAFTER,
    WHOLE_BLOCK,
    WITHOUT_MODEL,
    Command,
    Deployment,
    Draft,
    flags,
    joined,
    over,
)
from outrider.adapters.start.offers import Offer
from outrider.adapters.start.starter import beside
from outrider.errors import UsageError

PORT_OF_HOSTS = 5000  # that of SGLang's own documents
KEEP_STATES = ("--mamba-radix-cache-strategy", "extra_buffer")


class SGLangStarter:
    """SGLang."""

    title: ClassVar[str] = "SGLang"
    checked: ClassVar[tuple[str, str]] = ("0.5.10", "0.5.23")
    offers: ClassVar[tuple[Offer, ...]] = (
        Offer("mtp", "EAGLE"),
        Offer("eagle", "EAGLE"),
        Offer("eagle3", "EAGLE3"),
        Offer("draft_model", "STANDALONE"),
        Offer("ngram", "NGRAM"),
        Offer("dflash", "DFLASH", "0.5.11", "no CPU, no pipeline"),
        Offer("dflash2", "DFLASH", "0.5.20", "no CPU, no pipeline"),
        Offer("dspark", "DSPARK", "0.5.16", "no CPU"),
    )
    serves: ClassVar[bool] = True
    health: ClassVar[str] = "/health"
    usual_port: ClassVar[int] = 30000
    packages: ClassVar[tuple[str, ...]] = ("sglang",)

    def program(self, python: Path | None) -> Sequence[str]:
        """``sglang serve``."""
        if python is None:
            return ("sglang", "serve")
        script = beside(python, "sglang")
        return (str(script), "serve") if script else (str(python), "-m", "sglang.launch_server")

    def speculation(self, draft: Draft) -> tuple[str, ...] | None:
        """``--speculative-*``; its number of draft tokens counts the anchor, but for n-grams."""
        offer = next((one for one in self.offers if one.method == draft.method), None)
        if offer is None:
            return None
        own, block = draft.method in WITHOUT_MODEL, draft.method in WHOLE_BLOCK
        chain = None if block or draft.method == "ngram" else draft.tokens
        return flags(
            speculative_algorithm=offer.spelled,
            speculative_dspark_block_size=draft.tokens if draft.method == "dspark" else None,
            speculative_draft_model_path=None if own else draft.model or DRAFTER,
            speculative_num_steps=chain,
            speculative_eagle_topk=None if chain is None else 1,
            speculative_num_draft_tokens=draft.tokens + (draft.method != "ngram"),
        )

    def command(self, deployment: Deployment, *, python: Path | None = None) -> Command:
        """``sglang serve --model-path TARGET ...``; the same on every host, with its rank."""
        draft, parallel = deployment.draft, deployment.parallel
        block = draft is not None and draft.method in WHOLE_BLOCK
        if block and parallel.pipeline > 1:
            raise UsageError("SGLang runs DFlash and DSpark without pipeline stages: give tensor parallelism instead.")
        words = (
            *self.program(python),
            "--model-path",
            deployment.target,
            *(() if draft is None else self.speculation(draft) or ()),
            *(KEEP_STATES if deployment.hybrid and block else ()),
            *flags(
                tp_size=over(
                    parallel.tensor * parallel.data if parallel.several and parallel.data > 1 else parallel.tensor
                ),
                pp_size=over(parallel.pipeline),
                dp_size=over(parallel.data),
                quantization=deployment.quantisation,
                kv_cache_dtype=deployment.kv_dtype,
                context_length=deployment.max_len,
                host=deployment.host,
                port=deployment.port,
            ),
            *(("--enable-metrics",) if deployment.metrics else ()),
            *deployment.more,
        )
        if not parallel.several:
            return Command(words=words)
        if parallel.form == "ray":
            raise UsageError("SGLang's hosts find each other by --dist-init-addr; leave out --ray.")
        head = f"{parallel.hosts[0]}:{PORT_OF_HOSTS}"
        every = [
            (*words, *flags(nnodes=len(parallel.hosts), node_rank=rank, dist_init_addr=head))
            for rank in range(len(parallel.hosts))
        ]
        elsewhere = {h: (joined(every[r]),) for r, h in enumerate(parallel.hosts) if r != parallel.rank}
        return Command(words=every[parallel.rank], elsewhere=elsewhere)
