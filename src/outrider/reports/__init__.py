"""Verdicts for eyes: terminal, Markdown, one HTML file. No torch."""
