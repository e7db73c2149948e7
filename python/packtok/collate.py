"""Collates items into batches: the public names of `packtok.data.collate` and of Modalities' collators."""

from packtok.extras import needing_torch

with needing_torch("packtok.collate"):
    from packtok.compat.modalities.collators import (
        Batch,
        LossMaskingCollateFnWrapper,
        gpt_2_llm_collator,
        mask_loss_collator_wrapper,
    )
    from packtok.data.collate import Item, ItemList, collate

__all__ = [
    "Batch",
    "Item",
    "ItemList",
    "LossMaskingCollateFnWrapper",
    "collate",
    "gpt_2_llm_collator",
    "mask_loss_collator_wrapper",
]
