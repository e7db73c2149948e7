"""Inputs of streams in Python: sequences, iterables, datasets of other libraries, and braces in paths."""
