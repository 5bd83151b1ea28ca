"""How things that ship with Outrider were made; not part of the package."""
