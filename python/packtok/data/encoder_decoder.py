"""`EncoderDecoderDataset`: CEPE's samples from MDS folders, with teacher signals and retrieved passages.

Finds and aligns the folders. `packtok.data.contexts` makes the contexts of an item from passages.
"""

import warnings
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import Dataset

from packtok._packtok import MdsReader, context_masks
from packtok.choices import check_choice
from packtok.data.contexts import Passages, masked, passages_of
from packtok.fingerprint import digest
from packtok.integers import checked_integer

__all__ = ["ContextDataCollator", "EncoderDecoderDataset"]

RetrievalMode = Literal["joint", "separate", "no_neighbor", "ignore"]
# CEPE's domains.
DOMAINS = ("arxiv", "book", "c4-rp", "cc", "github", "stackexchange", "wiki")
# The entries that two markers must share if their folders are about the same samples.
_ALIGNED = ("plan", "side", "domain")

Item = dict[str, Any]
# The number of an item, or its epoch and its number.
Number = int | tuple[int, int]


class EncoderDecoderDataset(Dataset[Item]):
    """Samples of a decoder's tokens and of contexts for an encoder, as CEPE's training loader gives them.

    Items have NumPy arrays; `ContextDataCollator` makes batches of them. Masks of contexts are a function of
    the seed, the epoch and the sample: with `packtok.DataLoader` they do not depend on workers or restarts.

    Args:
        encoder_decoder_remote: Folder or URL with a folder of samples for each domain; several, separated by
            commas, take their domains from ``domains``. Columns ``token_ids`` and ``prev_token_ids``.
        epoch_size: Number of samples that are used, the first ones. Default: all.
        retrieval_remote: The same for retrieved passages: ``retrieved_token_ids`` and
            ``retrieved_neighbor_token_ids`` of shape (k, L), their lengths in ``retrieved_lengths`` and
            ``retrieved_neighbor_lengths``, and ``retrieval_scores``.
        distill_remote: The same for teacher signals: ``target_prob`` and ``target_index``, or ``draw_index``
            and ``label_logprob``.
        domains: ``"a,b"`` for all folders, or ``"a,b;c"``: those of each. Default: CEPE's seven.
        num_context: Number of contexts; 0 for none.
        context_size: Tokens of a context.
        chunk_size: Tokens of the decoder.
        loss_chunk_size: Number of labels at the end that count. Default: ``chunk_size``.
        tokenizer: Object with ``pad_token_id``, which pads passages, and ``eos_token_id`` for ``"dummy"``.
        mask_prob: Probability that a context is masked.
        mask_seq_prob: Probability that a masked context is masked as a whole, and not only a random number of
            tokens at its end.
        load_strategy: ``"best"`` takes contexts from the previous tokens or passages, ``"dummy"`` fills them
            with EOS, ``"duplicate"`` repeats the decoder's tokens; a name with ``"put_in_decoder"`` moves the
            contexts before the decoder's tokens.
        retrieval_mode: ``"joint"`` appends its neighbour to each passage, ``"separate"`` makes contexts of
            both (a mask covers a passage and its neighbour), ``"no_neighbor"`` leaves neighbours out,
            ``"ignore"`` takes contexts from the previous tokens.
        seed: Of the masks.
        verify: Whether to check a hash of each shard when it is first used.

    Raises:
        ValueError: If an argument is out of range, or folders about the samples are not aligned with them:
            their markers name another plan, side, domain or range, or, without markers, their lengths differ.
        PacktokError: If a folder has pickles. ``packtok sample import`` rewrites it.
        PbinFormatError: If a folder is damaged.

    Example:
        >>> dataset = packtok.data.EncoderDecoderDataset("samples/train", domains="arxiv,book", num_context=4)
        >>> collate = packtok.data.ContextDataCollator()
        >>> loader = packtok.DataLoader(dataset, 8, shuffle=True, collate_fn=collate)
    """

    #: `packtok.DataLoader` passes (epoch, item) instead of item.
    takes_epochs = True

    def __init__(
        self,
        encoder_decoder_remote: str,
        epoch_size: int | None = None,
        retrieval_remote: str | None = None,
        distill_remote: str | None = None,
        domains: str | None = None,
        num_context: int = 8,
        context_size: int = 256,
        chunk_size: int = 256,
        loss_chunk_size: int | None = None,
        tokenizer: Any = None,
        mask_prob: float = 0.0,
        mask_seq_prob: float = 0.0,
        load_strategy: str = "best",
        retrieval_mode: RetrievalMode = "no_neighbor",
        *,
        seed: int = 0,
        verify: bool = True,
    ) -> None:
        check_choice("retrieval_mode", retrieval_mode, ("joint", "separate", "no_neighbor", "ignore"))
        self.num_context = checked_integer("num_context", num_context)
        self.context_size = checked_integer("context_size", context_size, least=1)
        self.chunk_size = checked_integer("chunk_size", chunk_size, least=1)
        self.loss_chunk_size = (
            chunk_size if loss_chunk_size is None else checked_integer("loss_chunk_size", loss_chunk_size)
        )
        self.tokenizer = tokenizer
        self.mask_prob = _probability("mask_prob", mask_prob)
        self.mask_seq_prob = _probability("mask_seq_prob", mask_seq_prob)
        self.load_strategy = load_strategy
        self.retrieval_mode = retrieval_mode
        self.seed = checked_integer("seed", seed, below=1 << 64)
        self._epoch = 0
        needs_retrieval = retrieval_remote is not None and retrieval_mode != "ignore"
        self._check_tokenizer(pads=needs_retrieval)
        groups = _groups(domains)
        self._samples = _Folders(encoder_decoder_remote, groups, verify)
        self._distill = _Folders(distill_remote, groups, verify) if distill_remote else None
        self._retrieval = None
        if retrieval_remote and needs_retrieval:
            self._retrieval = _Folders(retrieval_remote, groups, verify)
        for signals in (self._distill, self._retrieval):
            if signals:
                signals.align(self._samples)
        self.epoch_size = _epoch_size(epoch_size, self._samples)

    def __len__(self) -> int:
        return self.epoch_size

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of items that are requested by number. `packtok.DataLoader` does not need it."""
        self._epoch = checked_integer("epoch", epoch)

    @property
    def fingerprint(self) -> str:
        """SHA-256, as hex, of everything that determines the items: folders and options."""
        folders = [self._samples, self._distill, self._retrieval]
        return digest(
            [
                *(folder and folder.identity for folder in folders),
                self.epoch_size,
                self.num_context,
                self.context_size,
                self.chunk_size,
                self.loss_chunk_size,
                self.mask_prob,
                self.mask_seq_prob,
                self.load_strategy,
                self.retrieval_mode,
                self.seed,
                *(getattr(self.tokenizer, name, None) for name in ("pad_token_id", "eos_token_id")),
            ]
        )

    def __getitem__(self, number: Number) -> Item:
        """Returns an item as CEPE's loader does, except for the masks."""
        epoch, i = number if isinstance(number, tuple) else (self._epoch, number)
        if not -self.epoch_size <= i < self.epoch_size:
            raise IndexError(f"item {i} is out of range, the dataset has {self.epoch_size}")
        i %= self.epoch_size
        item = self._samples[i]
        item["input_ids"] = self._input_ids(item)
        if self.num_context:
            self._add_contexts(item, i)
        if self._distill:
            self._add_signals(item, i)
        if self.mask_prob > 0:
            self._mask(item, epoch, i)
        if "put_in_decoder" in self.load_strategy and self.num_context:
            _put_in_decoder(item)
        labels = item["input_ids"].astype(np.int32)
        if self.loss_chunk_size < self.chunk_size:
            # As in CEPE's loader, 0 masks no label.
            labels[: -self.loss_chunk_size] = -100
        item["labels"] = labels
        return item

    def _input_ids(self, item: Item) -> Any:
        tokens = item["token_ids"]
        if self.chunk_size <= len(tokens):
            return tokens[: self.chunk_size]
        if self.num_context and self.load_strategy not in ("dummy", "duplicate"):
            raise ValueError(
                f"chunk_size is {self.chunk_size}, but a sample has {len(tokens)} decoder tokens; lower it, "
                "or set num_context to 0 to use previous tokens too"
            )
        return np.concatenate([item["prev_token_ids"], tokens])[-self.chunk_size :]

    def _add_contexts(self, item: Item, i: int) -> None:
        shape = (self.num_context, self.context_size)
        total = self.num_context * self.context_size
        if self.load_strategy == "dummy":
            item["encoder_input_ids"] = np.full(shape, self.tokenizer.eos_token_id)
        elif self.load_strategy == "duplicate":
            item["encoder_input_ids"] = _reshaped(item["input_ids"][:total], shape, "input_ids")
        elif self._retrieval:
            self._add_passages(item, self._retrieval[i])
        else:
            previous = item["prev_token_ids"]
            item["encoder_input_ids"] = _reshaped(previous[-total:], shape, "prev_token_ids")
            if "context_scores" in item:
                item["context_scores"] = item["context_scores"][-self.num_context :]
                item["encoder_attention_mask"] = np.ones_like(item["encoder_input_ids"])

    def _add_passages(self, item: Item, retrieved: Item) -> None:
        item["context_scores"] = retrieved["retrieval_scores"][: self.num_context]
        passages, neighbors = passages_of(retrieved, self.num_context)
        pad = self.tokenizer.pad_token_id
        if self.retrieval_mode == "joint":
            contexts = Passages.joined(passages, neighbors).padded(2 * self.context_size, pad)
        elif self.retrieval_mode == "separate":
            pairs = [part.padded(self.context_size, pad) for part in (passages, neighbors)]
            contexts = (np.stack([ids for ids, _ in pairs]), np.stack([mask for _, mask in pairs]))
        else:
            contexts = passages.padded(self.context_size, pad)
        item["encoder_input_ids"], item["encoder_attention_mask"] = contexts

    def _add_signals(self, item: Item, i: int) -> None:
        assert self._distill
        signals = self._distill[i]
        if "target_prob" in signals:
            item["distill_prob"], item["distill_index"] = signals["target_prob"], signals["target_index"]
        else:
            item["draw_index"], item["label_logprob"] = signals["draw_index"], signals["label_logprob"]

    def _mask(self, item: Item, epoch: int, i: int) -> None:
        if "encoder_input_ids" not in item:
            return
        mask = item.get("encoder_attention_mask")
        if mask is None:
            mask = np.ones_like(item["encoder_input_ids"])
        lengths = context_masks(
            seed=self.seed,
            epoch=epoch,
            sample=i,
            num_contexts=mask.shape[-2],
            mask_prob=self.mask_prob,
            mask_seq_prob=self.mask_seq_prob,
            context_size=self.context_size,
        )
        item["encoder_attention_mask"] = masked(mask, lengths)

    def _check_tokenizer(self, *, pads: bool) -> None:
        """Raises if the tokenizer lacks an id that items need."""
        needed = {"eos_token_id": self.load_strategy == "dummy", "pad_token_id": pads}
        for name, is_needed in needed.items():
            if is_needed and self.num_context and getattr(self.tokenizer, name, None) is None:
                raise ValueError(f"tokenizer has no {name}, which contexts need; give one that has it")

    def __repr__(self) -> str:
        return f"EncoderDecoderDataset({self._samples.remote!r}, {self.epoch_size} samples)"


class ContextDataCollator:
    """Makes a batch of items as CEPE's collator does: int64 ids, labels and masks, float32 probabilities.

    Items with sampled teacher signals add ``draw_index`` (int64) and ``label_logprob`` (float32).
    """

    _DTYPES: Mapping[str, Any] = {
        "input_ids": np.int64,
        "labels": np.int64,
        "encoder_input_ids": np.int64,
        "encoder_attention_mask": np.int64,
        "distill_prob": np.float32,
        "distill_index": np.int64,
        "draw_index": np.int64,
        "label_logprob": np.float32,
    }

    def __call__(self, batch: Sequence[Item]) -> dict[str, torch.Tensor]:
        """Returns a tensor with a row for each item, for each key that items have."""
        tensors: dict[str, torch.Tensor] = {}
        for key, dtype in self._DTYPES.items():
            if batch and key in batch[0]:
                rows = np.stack([item[key] for item in batch], dtype=dtype, casting="unsafe")
                tensors[key] = torch.from_numpy(rows)
        contexts = tensors.get("encoder_input_ids")
        if contexts is not None and contexts.dim() == 4:
            # Passages and neighbours, in the mode "separate".
            tensors["encoder_input_ids"] = contexts.flatten(1, 2)
        return tensors


class _Folders:
    """The folders of all domains, as one list of samples."""

    def __init__(self, remote: str, groups: list[list[str]], verify: bool) -> None:
        remotes = remote.split(",")
        if len(groups) not in (1, len(remotes)):
            raise ValueError(
                f"{remote}: {len(remotes)} folders, but domains has {len(groups)} groups; expected 1 or as "
                "many"
            )
        places = zip(remotes, groups * len(remotes) if len(groups) == 1 else groups, strict=True)
        self.remote = remote
        self.readers = [
            MdsReader(f"{place.rstrip('/')}/{domain}", verify=verify)
            for place, domains in places
            for domain in domains
        ]
        self._place([(0, len(reader)) for reader in self.readers])

    def _place(self, ranges: list[tuple[int, int]]) -> None:
        """Selects ``count`` samples from ``start`` on in each folder."""
        self._starts = list(accumulate((count for _, count in ranges), initial=0))
        self._firsts = [start for start, _ in ranges]

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, i: int) -> Item:
        folder = bisect_right(self._starts, i) - 1
        return self.readers[folder][i - self._starts[folder] + self._firsts[folder]]

    @property
    def identity(self) -> list[Any]:
        """The facts that determine the samples: the shards with their hashes, and the selected samples."""
        return [[reader.shards for reader in self.readers], self._starts, self._firsts]

    def align(self, samples: "_Folders") -> None:
        """Selects the samples that belong to ``samples``.

        Raises:
            ValueError: If there are none for some of them.
        """
        if len(self.readers) != len(samples.readers):
            raise ValueError(
                f"{self.remote}: {len(self.readers)} folders, {samples.remote} has {len(samples.readers)}; "
                "expected one for each"
            )
        self._place([_aligned(own, of) for own, of in zip(self.readers, samples.readers, strict=True)])


def _aligned(own: MdsReader, samples: MdsReader) -> tuple[int, int]:
    """Returns the number in ``own`` of the first sample of ``samples``, and the number of samples."""
    mine, theirs = own.marker, samples.marker
    if mine is None or theirs is None:
        bare = own.folder if mine is None else samples.folder
        if len(own) != len(samples):
            raise ValueError(
                f"{own.folder}: {len(own)} samples, {samples.folder} has {len(samples)}; expected the same "
                "samples"
            )
        warnings.warn(
            f"{bare}: no packtok.json says which samples these are; only the numbers of samples were "
            "compared",
            stacklevel=5,
        )
        return 0, len(own)
    for key in _ALIGNED:
        if mine[key] != theirs[key]:
            raise ValueError(
                f"{own.folder}: {key} is {mine[key]!r}, in {samples.folder} it is {theirs[key]!r}; expected "
                "folders about the same samples"
            )
    for reader, marker in ((own, mine), (samples, theirs)):
        if marker["stop"] - marker["start"] != len(reader):
            raise ValueError(
                f"{reader.folder}: packtok.json names samples {marker['start']}..{marker['stop']}, but the "
                f"folder has {len(reader)}; it belongs to another index"
            )
    if not mine["start"] <= theirs["start"] <= theirs["stop"] <= mine["stop"]:
        raise ValueError(
            f"{own.folder}: samples {mine['start']}..{mine['stop']}, {samples.folder} has "
            f"{theirs['start']}..{theirs['stop']}; expected at least these"
        )
    return theirs["start"] - mine["start"], len(samples)


def _groups(domains: str | None) -> list[list[str]]:
    """Returns the domains of each folder, or of all folders."""
    if domains is None:
        return [list(DOMAINS)]
    return [group.split(",") for group in domains.split(";")]


def _epoch_size(requested: int | None, samples: _Folders) -> int:
    if requested is None:
        return len(samples)
    requested = checked_integer("epoch_size", requested, least=1)
    if requested > len(samples):
        raise ValueError(f"epoch_size is {requested}, {samples.remote} has {len(samples)} samples; lower it")
    return requested


def _probability(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}, expected a number from 0 to 1")
    return float(value)


def _reshaped(tokens: Any, shape: tuple[int, int], name: str) -> Any:
    if len(tokens) != shape[0] * shape[1]:
        raise ValueError(
            f"{name} of a sample has {len(tokens)} tokens, num_context {shape[0]} times context_size "
            f"{shape[1]} needs {shape[0] * shape[1]}; lower one of them"
        )
    return tokens.reshape(shape)


def _put_in_decoder(item: Item) -> None:
    """Moves the contexts before the decoder's tokens."""
    contexts = item.pop("encoder_input_ids").reshape(-1)
    if "encoder_attention_mask" in item:
        mask = item.pop("encoder_attention_mask").reshape(-1)
        item["attention_mask"] = np.concatenate([mask, np.ones_like(item["input_ids"])])
    item["input_ids"] = np.concatenate([contexts, item["input_ids"]])
