"""Tokenizers by name: found on this machine or on the hub, and wrapped for other libraries."""
