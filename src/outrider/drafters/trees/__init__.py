"""Draft trees of the most probable paths: a builder for the host, one for the device, and what they rank.

Both rank by one rule. A path comes before another if it is more probable; of equally probable ones the shorter comes
first, and of equally long ones the one whose ranks (0 = best word of its slot), read from the root, are smaller. A
path's ancestors always precede it, so the first n paths are a tree, and the most probable one of n nodes. With a
seeded spine the chain of best words comes before all others. Log-probabilities are summed in float64 from the root
down, so that both builders see the same ties.
"""
