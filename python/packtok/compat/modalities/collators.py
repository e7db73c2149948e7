"""Modalities' two collators, which need no configs."""

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

__all__ = ["Batch", "LossMaskingCollateFnWrapper", "gpt_2_llm_collator", "mask_loss_collator_wrapper"]


class Batch(NamedTuple):
    """The result of Modalities' collators: tensors by key, each of shape ``(items, tokens)``."""

    samples: dict[str, torch.Tensor]
    targets: dict[str, torch.Tensor]


def gpt_2_llm_collator(
    batch: Sequence[Mapping[str, Any]],
    *,
    sample_key: str,
    target_key: str,
    dtype: torch.dtype = torch.int64,
) -> Batch:
    """Returns all but the last token of each item as samples, and all but the first as targets.

    Equivalent to Modalities' collator of the same name.

    Args:
        batch: Items with tokens under ``sample_key``: arrays or tensors of any integer type and equal length.
        sample_key: Key of the tokens in the items, and of the samples in the result.
        target_key: Key of the targets.
        dtype: Data type of the result. Embeddings need 32-bit or 64-bit integers. Modalities returns 32-bit
            integers for files with two bytes per token.

    Raises:
        ValueError: If the items have different lengths.

    Example:
        >>> collate_fn = functools.partial(packtok.collate.gpt_2_llm_collator, sample_key="x", target_key="y")
        >>> collate_fn([{"x": np.array([7, 8, 9])}]).targets["y"]
        tensor([[8, 9]])
    """
    rows = [np.asarray(item[sample_key]) for item in batch]
    tokens = torch.empty((len(rows), len(rows[0])), dtype=dtype)
    np.stack(rows, out=tokens.numpy(), casting="unsafe")
    return Batch({sample_key: tokens[:, :-1]}, {target_key: tokens[:, 1:]})


_Collator = Callable[[Any], Any]


class LossMaskingCollateFnWrapper:
    """Wraps a collator so that only targets between two marker tokens count for the loss.

    Equivalent to Modalities' class of the same name. Targets after each begin marker and before the next end
    marker are kept. All others, including the markers, become ``loss_ignore_index``. If a batch lacks one of
    the markers, a warning is issued and no target of the batch counts. Rows must not begin inside a part that
    counts; with ``loss_markers``, `packtok.TokenDataset` masks such rows too.

    Args:
        wrapped_collate_fn: Returns a batch with ``targets`` by key, or a dict of tensors, as `collate` does.
        target_keys_to_mask: Key or keys of the targets to mask, each a tensor of shape ``(items, tokens)``.
        loss_ignore_index: Value that the loss ignores.
        mask_tokens: The markers under ``b_include_to_loss_token`` and ``e_include_to_loss_token``, keys or
            attributes, as ids or as tokens of ``tokenizer``.
        tokenizer: Converts tokens to ids. A tokenizer of packtok, ``tokenizers``, ``transformers`` or
            Modalities.

    Raises:
        ValueError: If the markers are equal, or the tokenizer does not have one of them. A call raises it if
            the begin and end markers of a row do not alternate, starting with a begin marker.
    """

    def __init__(
        self,
        wrapped_collate_fn: _Collator,
        target_keys_to_mask: str | Collection[str],
        loss_ignore_index: int,
        mask_tokens: Any,
        tokenizer: Any = None,
    ) -> None:
        keys = target_keys_to_mask
        self.wrapped_collate_fn = wrapped_collate_fn
        self.target_keys_to_mask = [keys] if isinstance(keys, str) else list(keys)
        self.loss_ignore_index = loss_ignore_index
        self.tokenizer = tokenizer
        self.b_mask_token_id = _token_id(_marker(mask_tokens, "b_include_to_loss_token"), tokenizer)
        self.e_mask_token_id = _token_id(_marker(mask_tokens, "e_include_to_loss_token"), tokenizer)
        if self.b_mask_token_id == self.e_mask_token_id:
            raise ValueError(
                f"the begin and end markers have the same id {self.b_mask_token_id}; give two different "
                "tokens"
            )

    def __getstate__(self) -> dict[str, Any]:
        # The tokenizer is dropped: workers need only its ids, and some tokenizers cannot be pickled.
        return {**self.__dict__, "tokenizer": None}

    def __call__(self, batch: Any) -> Any:
        """Returns the batch of the wrapped collator with masked targets."""
        collated = self.wrapped_collate_fn(batch)
        targets = collated.targets if hasattr(collated, "targets") else collated
        for key in self.target_keys_to_mask:
            targets[key] = _masked(
                targets[key], key, self.loss_ignore_index, self.b_mask_token_id, self.e_mask_token_id
            )
        return collated


def mask_loss_collator_wrapper(
    wrapped_collate_fn: _Collator,
    target_keys_to_mask: str | Collection[str],
    loss_ignore_index: int,
    mask_tokens: Mapping[str, str | int],
    tokenizer: Any = None,
) -> LossMaskingCollateFnWrapper:
    """Returns a `LossMaskingCollateFnWrapper`, under the name that Modalities' configs use.

    It can be pickled if ``wrapped_collate_fn`` can. Arguments and errors are those of the
    class.
    """
    return LossMaskingCollateFnWrapper(
        wrapped_collate_fn, target_keys_to_mask, loss_ignore_index, mask_tokens, tokenizer
    )


def _marker(mask_tokens: Any, name: str) -> str | int:
    """Returns a marker of a mapping, or of Modalities' object."""
    marker: str | int = mask_tokens[name] if isinstance(mask_tokens, Mapping) else getattr(mask_tokens, name)
    return marker


def _masked(target: torch.Tensor, key: str, ignore_index: int, begin: int, end: int) -> torch.Tensor:
    begins, ends = target == begin, target == end
    for name, id_, markers in (("begin", begin, begins), ("end", end, ends)):
        if not markers.any():
            if _is_first_rank():
                warnings.warn(
                    f"{key}: the {name} marker, id {id_}, does not occur in the batch, so no token counts "
                    "for the loss; check that the tokenizer encodes the marker as one token, also next to "
                    "spaces",
                    stacklevel=3,
                )
            return torch.full_like(target, ignore_index)
    # Number of open spans at each target: a begin marker opens one after itself, an end marker closes one at
    # itself.
    opened = torch.zeros_like(target, dtype=torch.int32)
    opened[:, 1:] = begins[:, :-1]
    opened -= ends.int()
    depth = opened.cumsum(-1, dtype=torch.int32)
    wrong = (depth < 0) | (depth > 1)
    if wrong.any():
        row, position = (int(i) for i in wrong.nonzero()[0])
        if depth[row, position] < 0:
            fault = f"an end marker without a begin marker at position {position}"
        else:
            fault = f"a second begin marker at position {position - 1}"
        raise ValueError(
            f"{key}: row {row} has {fault}; markers must alternate in each row, starting with a begin "
            "marker; put each conversation in its own row"
        )
    return target.where(depth == 1, ignore_index)


def _is_first_rank() -> bool:
    """Returns whether this process is rank 0, or there are no ranks."""
    distributed = torch.distributed
    return not (distributed.is_available() and distributed.is_initialized()) or distributed.get_rank() == 0


def _token_id(token: str | int, tokenizer: Any) -> int:
    """Returns the id of a marker.

    Raises:
        ValueError: If the tokenizer does not have it.
    """
    if isinstance(token, int):
        return token
    for method in ("token_to_id", "get_token_id", "convert_tokens_to_ids"):
        if hasattr(tokenizer, method):
            id_ = getattr(tokenizer, method)(token)
            if id_ is None or id_ == getattr(tokenizer, "unk_token_id", None):
                break
            return int(id_)
    raise ValueError(
        f"the tokenizer has no token {token!r}; give a marker that is one of its tokens, or give an id"
    )
