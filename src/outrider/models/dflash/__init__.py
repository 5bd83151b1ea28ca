"""DFlash block-diffusion drafters and their successors: configuration, formats, network, heads."""
