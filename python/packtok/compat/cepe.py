"""CEPE's training loader under its names, for scripts that import `data.py`.

Only folders without pickles are read: ``packtok sample import`` rewrites those of CEPE's scripts.
"""

from packtok.data.encoder_decoder import DOMAINS, ContextDataCollator, EncoderDecoderDataset

__all__ = ["RP_DOMAINS", "CombineStreamingDataset", "ContextDataCollator"]

RP_DOMAINS = list(DOMAINS)
CombineStreamingDataset = EncoderDecoderDataset
