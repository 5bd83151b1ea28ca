"""Measuring engines side by side: each arm in its own process, all on the same prompts."""
