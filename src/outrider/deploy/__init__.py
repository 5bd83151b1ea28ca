"""Servers of other engines: found, started, waited for, watched, stopped. No torch."""
