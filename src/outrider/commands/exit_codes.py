"""Exit codes that the command line and several commands know."""

INTERRUPTED = 130  # by Ctrl-C; what a shell says of it
