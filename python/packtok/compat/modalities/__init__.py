"""Modalities' functions and classes by their names and arguments.

Names are imported on first use: the functions need no torch, and the datasets no configs.
"""

from packtok.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
