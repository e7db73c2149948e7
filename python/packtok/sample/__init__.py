"""Recipes of samples: which domains, windows and sides, and the token files that they are drawn from.

The work is done by the compiled module; this package checks what a user gives it.
"""
