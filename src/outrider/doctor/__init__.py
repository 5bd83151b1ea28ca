"""Why acceptance or speed is low: what is known in, a ranked verdict out. No torch but in ``ablation``."""
