"""A server's acceptance for Prometheus, by the definitions of the glossary, whatever the engine calls them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from prometheus_client import CollectorRegistry, Metric, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from outrider.adapters import Counts
from outrider.deploy.watcher import Tick
from outrider.errors import UsageError

LABELS = ["engine", "model"]


class Exported(Collector):
    """What is exported: sums since the watch began, and rates of the last window."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._total = Counts()
        self._window: Tick | None = None
        self._up = 0.0
        self._alarm = 0.0
        self._names = ["", ""]

    def update(self, tick: Tick, window: Tick | None, *, engine: str | None, alarm: bool) -> None:
        """Take a look in.

        Args:
            tick: the look.
            window: several looks as one, of which rates are formed.
            engine: the server's.
            alarm: whether the curve differs from what it was.
        """
        with self._lock:
            self._up, self._alarm = float(tick.problem is None), float(alarm)
            self._window = window
            if tick.counts is not None:
                self._names = [engine or "", tick.counts.model or self._names[1]]
                if tick.seconds is not None:
                    self._total = self._total.plus(tick.counts)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics."""
        with self._lock:
            yield from (
                *_counters(self._total, self._names),
                *_gauges(self._window, self._names),
                _gauge("outrider_spec_up", "1 where the last look read something.", self._names, self._up),
                _gauge("outrider_spec_alarm", "1 while the curve differs from before.", self._names, self._alarm),
            )


def _counters(total: Counts, names: list[str]) -> Iterator[Metric]:
    told = {
        "outrider_spec_rounds": ("Rounds: proposals that were verified.", total.rounds),
        "outrider_spec_drafted_tokens": ("Draft tokens proposed.", total.drafted),
        "outrider_spec_accepted_tokens": ("Draft tokens kept, the bonus token not counted.", total.accepted),
        "outrider_spec_generated_tokens": ("Tokens written.", total.generated),
    }
    for name, (text, value) in told.items():
        if value is not None:
            family = CounterMetricFamily(name, text, labels=LABELS)
            family.add_metric(names, value)
            yield family
    if total.per_position:
        text = "Rounds in which positions 1..k were all accepted."
        family = CounterMetricFamily("outrider_spec_accepted_at_position", text, labels=[*LABELS, "position"])
        for k, hits in enumerate(total.per_position, start=1):
            family.add_metric([*names, str(k)], hits)
        yield family


def _gauges(window: Tick | None, names: list[str]) -> Iterator[Metric]:
    if window is None or window.counts is None:
        return
    reading = window.reading()
    told = {
        "outrider_spec_acceptance_length": ("Tokens a round, the bonus token counted (tau).", reading.tau),
        "outrider_spec_acceptance_rate": ("Accepted over drafted tokens (r).", reading.rate),
        "outrider_spec_tokens_per_second": ("Tokens written a second.", reading.speed),
        "outrider_spec_running_requests": ("Requests at work.", window.counts.running),
    }
    for name, (text, value) in told.items():
        if value is not None:
            yield _gauge(name, text, names, value)
    if reading.positions:
        text = "Share of rounds in which positions 1..k were all accepted (u_k)."
        family = GaugeMetricFamily("outrider_spec_position_rate", text, labels=[*LABELS, "position"])
        for k, rate in enumerate(reading.positions, start=1):
            family.add_metric([*names, str(k)], rate)
        yield family


def _gauge(name: str, text: str, names: list[str], value: float) -> Metric:
    family = GaugeMetricFamily(name, text, labels=LABELS)
    family.add_metric(names, value)
    return family


@contextmanager
def exporting(port: int | None) -> Iterator[Exported | None]:
    """Yield what is exported on a port, 0 for a free one; None without a port.

    Raises:
        UsageError: the port is taken.
    """
    if port is None:
        yield None
        return
    registry, exported = CollectorRegistry(), Exported()
    registry.register(exported)
    try:
        server, thread = start_http_server(port, registry=registry)
    except OSError as error:
        raise UsageError(f"--export {port}: cannot listen there ({error.strerror}); name another port.") from error
    try:
        yield exported
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
