"""How it behaves with millions of keys and promises, and over half an hour of load.

Rule: a figure stands beside those of the same store in the same run; what counts is the curve.
"""
