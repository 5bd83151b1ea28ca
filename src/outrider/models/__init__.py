"""Networks: one decoder for all families of targets, and how its weights are loaded."""
