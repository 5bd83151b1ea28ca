"""What each cause looks like: signals by family. ``doctor.rule`` is the table of them."""
