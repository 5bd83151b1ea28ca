"""What engines print and report, read; one module an engine. No torch."""
