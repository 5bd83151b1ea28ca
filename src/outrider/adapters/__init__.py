"""What other engines print, report and are told, read as parts of an evidence file (docs/evidence.md). No torch."""

from outrider.adapters.adapter import Adapter, Part
from outrider.adapters.counts import Counts
from outrider.adapters.table import ADAPTERS, adapter_of_command, adapter_of_log, adapter_of_metrics

__all__ = ["ADAPTERS", "Adapter", "Counts", "Part", "adapter_of_command", "adapter_of_log", "adapter_of_metrics"]
