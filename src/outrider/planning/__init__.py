"""Which way of decoding is fastest on some hardware, before anything is bought or started. No torch."""
