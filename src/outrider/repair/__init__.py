"""The config of a drafter, from its tensors and by experiment on the pair."""
