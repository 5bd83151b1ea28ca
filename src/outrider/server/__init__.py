"""The OpenAI API over the embedded engine: a front that speaks HTTP, and the engine in a process of its own.

The front knows text and no torch. What goes between the two is in ``messages``. Open ``app`` first.
"""
