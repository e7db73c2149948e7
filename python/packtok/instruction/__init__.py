"""Instruction-tuning data: conversations become texts by a template, and each part of them a pbin."""
