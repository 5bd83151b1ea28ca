"""Traces: every round of a run in a file, and what can be read from it. The format is ``docs/trace.md``."""
