"""The embedded engine: one step for plain decoding, chains and trees. Knows no method, no network and no text."""
