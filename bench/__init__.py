"""The benchmarks: OnceKey, the bare application and the peers, side by side in one run.

Rule: nothing is compared across runs; every figure is a ratio within one round.
"""
