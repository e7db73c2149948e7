"""Datasets, samplers and loaders for PyTorch over packed files.

The names in `__init__.pyi` include those of ``tatm.data``, so that its users change only the import. All are
imported on first use.
"""

from packtok.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
