"""A small model of the Qwen3.5 architecture, taught by smollm2-135m."""
