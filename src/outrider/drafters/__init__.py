"""Drafting methods, one file each: begin, propose, observe. The table is ``registry.DRAFTERS``."""
