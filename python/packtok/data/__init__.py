"""Datasets, samplers and loaders for PyTorch over packed files."""
