"""Prometheus metrics. Speculation, latencies and load carry vLLM's names, so that dashboards made for it show them.

``vllm:spec_decode_num_drafts_total`` counts as vLLM does the rounds in which something was drafted; all rounds, those
without a draft too, are ``outrider:rounds_total`` (docs/glossary.md).
"""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from outrider import __version__
from outrider.server.messages import End, Ready, Stepped

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
ALL_REASONS = ("stop", "length", "cancelled")


class Measures:
    """The metrics of one server.

    Args:
        model: the name under which it is served: a label of every metric, as with vLLM.
    """

    def __init__(self, model: str) -> None:
        self._registry = CollectorRegistry()
        self._model = model
        self._rounds = self._counter("outrider:rounds", "Rounds of all texts, those without a draft too.")
        self._drafts = self._counter("vllm:spec_decode_num_drafts", "Rounds in which something was drafted.")
        self._drafted = self._counter("vllm:spec_decode_num_draft_tokens", "Nodes drafted.")
        self._accepted = self._counter(
            "vllm:spec_decode_num_accepted_tokens", "Draft tokens accepted, the bonus token not counted."
        )
        self._positions = Counter(
            "vllm:spec_decode_num_accepted_tokens_per_pos",
            "Rounds whose draft was accepted up to a position, from 0.",
            ("model_name", "position"),
            registry=self._registry,
        )
        self._prompted = self._counter("vllm:prompt_tokens", "Tokens of prompts of finished texts.")
        self._generated = self._counter("vllm:generation_tokens", "Tokens written.")
        self._finished = Counter(
            "vllm:request_success",
            "Texts that ended, by reason.",
            ("model_name", "finished_reason"),
            registry=self._registry,
        )
        self._looked_up = self._counter("vllm:prefix_cache_queries", "Tokens of prompts looked up for reuse.")
        self._reused = self._counter("vllm:prefix_cache_hits", "Tokens of prompts that did not have to be read.")
        self._refused = Counter(
            "outrider:requests_refused", "Requests refused, by HTTP status.", ("model_name", "status"),
            registry=self._registry,
        )  # fmt: skip
        self._restarts = self._counter("outrider:engine_restarts", "Times the engine's process was started again.")
        self._running = self._gauge("vllm:num_requests_running", "Texts in a slot.")
        self._waiting = self._gauge("vllm:num_requests_waiting", "Texts that wait for a slot.")
        self._filled = self._gauge("vllm:kv_cache_usage_perc", "Share of the cache's rows in use, 0 to 1.")
        self._slots = self._gauge("outrider:slots", "Texts that can run at once.")
        self._up = self._gauge("outrider:engine_up", "Whether the engine is loaded.")
        self._first = self._histogram("vllm:time_to_first_token_seconds", "From a request to its first token.")
        self._between = self._histogram(
            "vllm:inter_token_latency_seconds", "Between tokens; those of one round share its time."
        )
        self._whole = self._histogram("vllm:e2e_request_latency_seconds", "From a request to its last token.")
        self._queue = self._histogram("vllm:request_queue_time_seconds", "Waiting for a slot.")
        self._prefill = self._histogram("vllm:request_prefill_time_seconds", "Reading the prompt.")
        self._decode = self._histogram("vllm:request_decode_time_seconds", "All rounds of a text.")
        self._prompt_sizes = self._histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", SIZES)
        self._text_sizes = self._histogram("vllm:request_generation_tokens", "Tokens of a text.", SIZES)
        self._begin()

    def _begin(self) -> None:
        """Show what can be counted before anything was."""
        for reason in ALL_REASONS:
            self._finished.labels(self._model, reason)
        build = Gauge("outrider:build_info", "What runs.", ("version",), registry=self._registry)
        build.labels(__version__).set(1)

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, ("model_name",), registry=self._registry).labels(self._model)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(name, text, ("model_name",), registry=self._registry).labels(self._model)

    def _histogram(self, name: str, text: str, buckets: Sequence[float] = SHORT) -> Histogram:
        made = Histogram(name, text, ("model_name",), buckets=buckets, registry=self._registry)
        return made.labels(self._model)

    def ready(self, ready: Ready) -> None:
        """An engine is loaded."""
        self._up.set(1)
        self._slots.set(ready.slots)

    def lost(self) -> None:
        """The engine died and is started again."""
        self._restarts.inc()
        for gauge in (self._up, self._running, self._waiting, self._filled):
            gauge.set(0)

    def stepped(self, step: Stepped) -> None:
        """Take in what a step brought."""
        self._running.set(step.running)
        self._waiting.set(step.waiting)
        self._filled.set(step.filled)
        for progress in step.progress:
            counts = progress.counts
            self._rounds.inc()
            self._generated.inc(len(progress.pieces))
            if counts.drafted:
                self._drafts.inc()
                self._drafted.inc(counts.drafted)
                self._accepted.inc(counts.accepted)
                for position in range(counts.depth):
                    self._positions.labels(self._model, str(position)).inc(position < counts.accepted)

    def ended(self, end: End, prompt: int) -> None:
        """Take in how a text went."""
        self._finished.labels(self._model, end.finish_reason).inc()
        self._prompted.inc(prompt)
        self._looked_up.inc(prompt)
        self._reused.inc(end.cached)
        self._queue.observe(end.queue_s)
        self._prefill.observe(end.prefill_s)
        self._decode.observe(end.decode_s)
        self._prompt_sizes.observe(prompt)
        self._text_sizes.observe(sum(r.accepted + 1 for r in end.rounds))

    def cancelled(self) -> None:
        """Nobody waited for a text any more."""
        self._finished.labels(self._model, "cancelled").inc()

    def first_token(self, seconds: float) -> None:
        """From a request to its first token."""
        self._first.observe(seconds)

    def tokens_later(self, seconds: float, tokens: int) -> None:
        """So many tokens came together, so long after those before: each is counted with its share."""
        for _ in range(tokens):
            self._between.observe(seconds / tokens)

    def whole(self, seconds: float) -> None:
        """From a request to its last token."""
        self._whole.observe(seconds)

    def refused(self, status: int) -> None:
        """A request was answered with an error."""
        self._refused.labels(self._model, str(status)).inc()

    def text(self) -> bytes:
        """All of it in Prometheus' text form."""
        return generate_latest(self._registry)
