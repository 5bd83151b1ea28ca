"""What a training run's logs say: curves, a fitted end, a verdict with its reasons. Needs no torch and no weights."""
