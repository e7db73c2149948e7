"""Streams: documents are read, tokenized, made into rows, shuffled and batched while training runs.

The interface is that of epochraft, over packtok's own readers, tokenizers and state
(docs/guides/streaming.md).
Names are imported on first use, because processes that run a user's functions import a module of this
package, and need no torch.
"""

from packtok.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
