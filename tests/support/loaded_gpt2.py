"""Loads GPT-2's tokenizer when it is imported: forked processes share it (`forked_cli`)."""

from packtok import _packtok

_packtok.builtin_tokenizer("gpt2")
