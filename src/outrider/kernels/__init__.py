"""Computations that no library has: one a file, in plain PyTorch, which any faster twin must equal."""
