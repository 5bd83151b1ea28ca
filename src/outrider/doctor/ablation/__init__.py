"""The causal experiment: a pair healthy and with each fault put in, and what explains an observed curve.

What runs a network (``run``, ``inject``, ``network``, ``weights``, ``rounding``) needs torch and is imported late.
"""
