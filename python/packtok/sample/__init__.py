"""Recipes of samples: which domains, windows and sides, and the token files that they are drawn from.

The compiled module does the work; this package checks the arguments.
"""
