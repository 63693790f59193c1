"""Counters and distributions of the live service, for Prometheus.

Each service has a registry of its own, since several may run in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

MEDIA_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
_SINK: Final = ("query", "sink")
_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What has happened since the start. Safe for many threads.

    `measured`: gauges that are read by each scrape.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.events = self._counter("oxiseq_events", "Events accepted into the log.", "stream")
        self.late = self._counter("oxiseq_late_events", "Events older than their stream's watermark.", "stream")
        self.rejected = self._counter("oxiseq_rejected_events", "Events of bodies that were rejected.", "stream")
        self.rejected_lines = self._counter("oxiseq_rejected_lines", "Lines of bodies that were rejected.", "stream")
        self.duplicates = self._counter(
            "oxiseq_duplicate_batches", "Batches that were stored before, under the same id.", "stream"
        )
        self.backpressure = self._counter(
            "oxiseq_backpressure_rejected_batches", "Batches rejected because the queue was full."
        )
        self.processed = self._counter("oxiseq_processed_events", "Events that the queries have processed.")
        self.matches = self._counter("oxiseq_matches", "Matches found and stored.", "query")
        self.state_drops = self._counter(
            "oxiseq_query_state_drops", "Times that a query has dropped its state.", "query"
        )
        self.quarantined = self._counter(
            "oxiseq_quarantined_entries", "Entries of the log that a query has quarantined and skips.", "query"
        )
        self.omitted = self._counter(
            "oxiseq_omitted_instants", "Instants left out for a query, beyond a bound.", "query"
        )
        self.stops = self._counter("oxiseq_worker_stops", "Times that the worker was stopped by an error.")
        self.failures = self._counter("oxiseq_query_failures", "Times that a query was stopped by an error.", "query")
        self.kb_refreshes = self._counter("oxiseq_kb_refreshes", "Times that the server queried the upstream again.")
        self.kb_failures = self._counter("oxiseq_kb_refresh_failures", "Times that this failed: old answers stayed.")
        self.disconnected = self._counter(
            "oxiseq_slow_subscribers_disconnected", "Subscribers disconnected because they were too slow."
        )
        self.rejected_readers = self._counter("oxiseq_subscribers_rejected", "Subscribers rejected beyond the cap.")
        self.sink_delivered = self._counter(
            "oxiseq_sink_delivered_matches", "Matches that receivers confirmed.", *_SINK
        )
        self.sink_failures = self._counter("oxiseq_sink_failures", "Deliveries that were not confirmed.", *_SINK)
        self.sink_lost = self._counter("oxiseq_sink_lost_matches", "Matches given up, or deleted too early.", *_SINK)
        self.push_seconds = self._histogram("oxiseq_push_seconds", "From a batch's arrival to its acknowledgement.")
        self.processing_seconds = self._histogram("oxiseq_processing_seconds", "Time of one turn of the worker.")
        self.lock_seconds = self._histogram(
            "oxiseq_worker_lock_seconds", "Time for which the worker's lock was held at a stretch."
        )

    def measure(self, measured: Callable[[], Iterable[Metric]]) -> None:
        """Gauges that are read by each scrape."""
        self._registry.register(_Measured(measured))

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, registry=self._registry, buckets=_BOUNDS)


class _Measured(Collector):
    def __init__(self, measured: Callable[[], Iterable[Metric]]) -> None:
        self._measured = measured

    def collect(self) -> Iterable[Metric]:
        return self._measured()


def gauge(name: str, text: str, value: float | None = None, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
    """A gauge, with its value or with labels and values to be added."""
    return GaugeMetricFamily(f"oxiseq_{name}", text, value=value, labels=labels or None)


def counter(name: str, text: str, labels: tuple[str, ...]) -> CounterMetricFamily:
    """A counter whose values are read by each scrape and never fall, with labels and values to be added."""
    return CounterMetricFamily(f"oxiseq_{name}", text, labels=labels)
