"""A vision transformer: wiring over operation tables, its float32 kernels, and certificates of every gradient."""
