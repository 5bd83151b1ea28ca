"""Servers measured under load: one workload, arms interleaved, each against the same engine's plain decoding."""
