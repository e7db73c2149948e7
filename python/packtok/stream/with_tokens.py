"""The methods of streams that tokenize, and that make rows of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypedDict, Unpack

from packtok.choices import check_choice
from packtok.config.options import OPTIONS
from packtok.integers import checked_integer, integer
from packtok.stream import recipe, tokenizers
from packtok.stream.with_functions import ParallelExecutorType, WithFunctions

__all__ = ["RowFields", "WithTokens"]

_MAX_DOCUMENT_BYTES: int = OPTIONS["max_document_bytes"].default


class RowFields(TypedDict, total=False):
    """Fields of rows that follow from their documents; docs/token_dataset.md describes each."""

    labels: bool | Literal["aligned"]
    """The token after each token, of shape (n,) int64; with ``"aligned"``, the token itself."""
    position_ids: bool
    """The position of each token in its document's part of the row, of shape (n,) int64."""
    document_ids: bool
    """The number of the document of each token in its row, of shape (n,) int32; -1 in padding."""
    loss_mask: bool
    """Whether each token has a label, of shape (n,) bool."""
    cu_seqlens: bool
    """The boundaries of documents, (k + 1,) int32, and the int ``max_seqlen``; of a batch, over all rows."""


class WithTokens(WithFunctions):
    """The methods that tokenize and make rows."""

    def tokenize(
        self,
        tokenizer: Any,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        target_column: str = "text",
        parallel: bool = True,
        max_workers: int = 1,
        prefetch_factor: int = 10,
        ordered: bool = True,
        executor_type: ParallelExecutorType = "thread",
        *,
        add_special_tokens_from_config: bool = False,
    ) -> Self:
        """Adds the columns ``input_ids`` and ``attention_mask``, lists, for the text in ``target_column``.

        ``tokenizer`` is a ``packtok.Tokenizer``, a path or name, or a fast tokenizer of Hugging Face: all use
        packtok's engine on all CPUs. Any other callable is called as it is, and returns a dict of columns.

        ``tokenizer_kwargs`` may contain ``add_special_tokens``, ``truncation`` with ``max_length``,
        ``return_attention_mask``, and ``return_tensors``, which makes columns of shape (1, n) as Hugging
        Face does. Any other argument may have the value that changes nothing, such as ``padding=False``.
        ``add_special_tokens_from_config`` is that of `packtok.Tokenizer.from_pretrained`.

        Raises:
            ValueError: If an argument of the tokenizer is not supported.
        """
        found = tokenizers.tokenizer_of(
            tokenizer, add_special_tokens_from_config=add_special_tokens_from_config
        )
        if found is None:
            return self._tokenized_by_call(
                tokenizer,
                tokenizer_kwargs,
                target_column,
                parallel,
                max_workers,
                prefetch_factor,
                executor_type,
            )
        del parallel, max_workers, prefetch_factor, ordered, executor_type
        options = dict(tokenizer_kwargs or {})
        add_special_tokens = options.pop("add_special_tokens", True)
        truncation, max_length = options.pop("truncation", False), options.pop("max_length", None)
        has_mask = options.pop("return_attention_mask", None) is not False
        form = tokenizers.form_of(options.pop("return_tensors", None))
        tokenizers.check_without_effect(options)
        check_choice("truncation", truncation, (True, False, "longest_first", "do_not_truncate"))
        truncation = truncation in (True, "longest_first")
        if truncation != (max_length is not None):
            raise ValueError(
                "truncation and max_length in tokenizer_kwargs need each other; give both or none"
            )
        arguments = {
            "add_special_tokens": bool(add_special_tokens),
            "truncate_to": max_length if truncation else None,
            "text_column": target_column,
            "mask_column": "attention_mask" if has_mask else None,
            "ensured": [None, None],
            "max_document_bytes": _max_document_bytes(self._node),
        }
        execution = {"drops_record": False, "form": form}
        identity = {"tokenizer": found.fingerprint}
        upstream = (self._node,)
        return self._with(
            recipe.Node("tokenize", arguments, execution, upstream, object=found, identity=identity)
        )

    def _tokenized_by_call(
        self,
        tokenizer: Callable[..., Mapping[str, Any]],
        tokenizer_kwargs: Mapping[str, Any] | None,
        target_column: str,
        parallel: bool,
        max_workers: int,
        prefetch_factor: int,
        executor_type: ParallelExecutorType,
    ) -> Self:
        call = tokenizers.Tokenized(tokenizer, dict(tokenizer_kwargs or {}), target_column)
        if not parallel:
            return self.map(call)
        return self.parallel_map(call, max_workers, prefetch_factor, True, executor_type)

    def add_bos_eos(
        self, bos_token_id: int | None, eos_token_id: int | None, target_column: str = "input_ids"
    ) -> Self:
        """Adds these ids at the start and at the end of every document, whether or not they are there.

        ``target_column`` becomes a tensor.

        Raises:
            ValueError: If one is above 2**32 - 1.
        """
        for name, id_ in (("bos_token_id", bos_token_id), ("eos_token_id", eos_token_id)):
            if id_ is not None and integer(name, id_) >= 1 << 32:
                raise ValueError(f"{name} is {id_}, expected at most 4294967295")
        return self._ends(bos_token_id, eos_token_id, target_column, always=True)

    def ensure_bos_eos(self, tokenizer: Any, target_column: str = "input_ids") -> Self:
        """Adds the tokenizer's BOS and EOS to every document that lacks them.

        If both are the same token and the document has it at its start or end, nothing is added; if it has
        neither, the token is added at the end. ``target_column`` becomes a tensor.

        Raises:
            ValueError: If the tokenizer has neither token.
        """
        bos_id, eos_id = tokenizers.special_ids(tokenizer)
        node = self._node
        is_plain = node.op == "tokenize" and node.arguments["ensured"] == [None, None]
        if is_plain and target_column == "input_ids":
            arguments = {**node.arguments, "ensured": [bos_id, eos_id]}
            execution = {**node.execution, "form": "tensor"}
            return self._with(replace(node, arguments=arguments, execution=execution))
        return self._ends(bos_id, eos_id, target_column, always=False)

    def _ends(self, bos_id: int | None, eos_id: int | None, column: str, *, always: bool) -> Self:
        arguments = {"column": column, "ends": [bos_id, eos_id], "always": always}
        return self._with(recipe.Node("ends", arguments, upstream=(self._node,)))

    def chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        drop_remainder: bool = True,
        **fields: Unpack[RowFields],
    ) -> Self:
        """Divides every document into rows of ``chunk_length`` tokens; no row has tokens of two documents.

        Rows have ``fields`` in addition to ``target_columns``; the first of these is that of the ids.
        """
        return self._rows("chunk", chunk_length, target_columns, drop_remainder, fields)

    def concat_chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        drop_remainder: bool = True,
        **fields: Unpack[RowFields],
    ) -> Self:
        """Divides the tokens of all documents, one after the other, into rows of ``chunk_length`` tokens.

        Rows have ``fields`` in addition to ``target_columns``; the first of these is that of the ids. With
        labels, they are the items of ``TokenDataset`` for the same documents.
        """
        return self._rows("concat_chunk", chunk_length, target_columns, drop_remainder, fields)

    def pack_chunk(
        self,
        chunk_length: int,
        target_columns: Sequence[str] = ("input_ids",),
        discard_long_samples: bool = False,
        *,
        strategy: Literal["next_fit", "best_fit"] = "next_fit",
        window: int = 1000,
        **fields: Unpack[RowFields],
    ) -> Self:
        """Puts complete documents into rows of at most ``chunk_length`` tokens.

        ``"next_fit"`` puts as many as fit into a row, in their order; a longer document is truncated, or
        dropped with ``discard_long_samples``. ``"best_fit"`` reads ``window`` documents and combines those
        that fit together; a longer document is divided into full rows and a rest: no token is dropped.

        Rows have ``fields`` in addition to ``target_columns``; the first of these is that of the ids.

        Raises:
            ValueError: If an argument is not valid.
        """
        check_choice("strategy", strategy, ("next_fit", "best_fit"))
        more: dict[str, Any] = {"strategy": strategy, "discard_long": discard_long_samples}
        if strategy == "best_fit":
            if discard_long_samples:
                raise ValueError("best_fit divides long documents; leave discard_long_samples out")
            more = {"strategy": strategy, "window": checked_integer("window", window, least=1)}
        return self._rows("pack_chunk", chunk_length, target_columns, True, fields, **more)

    def pad(self, pad_values: Mapping[str, int], chunk_length: int, **fields: Unpack[RowFields]) -> Self:
        """Extends the columns of ``pad_values`` to ``chunk_length`` tokens with their values.

        ``fields`` that rows of this stream have, or that are requested here, cover the padding too. Of what a
        function returned, only ``pad_values`` are extended.

        Raises:
            ValueError: If there are no columns; while iterating, if one is missing or longer, or if fields
                are requested for what a function returned.
        """
        if not pad_values:
            raise ValueError("pad_values is empty, expected at least one column")
        arguments = {
            "values": [[name, integer(name, value)] for name, value in pad_values.items()],
            "chunk_length": checked_integer("chunk_length", chunk_length, least=1),
            "fields": _row_fields(fields) if fields else None,
        }
        return self._with(recipe.Node("pad", arguments, upstream=(self._node,)))

    def _rows(
        self,
        op: str,
        length: int,
        columns: Sequence[str],
        drop_remainder: bool,
        fields: RowFields,
        **more: Any,
    ) -> Self:
        node, names = self._node, [columns] if isinstance(columns, str) else list(columns)
        if not names:
            raise ValueError("target_columns is empty, expected at least one column")
        if node.op == "tokenize":
            wanted = node.arguments["mask_column"] if "attention_mask" in names else None
            arguments = {**node.arguments, "mask_column": wanted}
            node = replace(node, arguments=arguments, execution={**node.execution, "drops_record": True})
        arguments = {
            "chunk_length": checked_integer("chunk_length", length, least=1),
            "columns": names,
            "drop_remainder": drop_remainder,
            "fields": _row_fields(fields),
            **more,
        }
        return self._with(recipe.Node(op, arguments, upstream=(node,)))


def _row_fields(fields: RowFields) -> dict[str, Any]:
    """The fields as the core takes them."""
    known = RowFields.__annotations__
    if unknown := sorted(set(fields) - set(known)):
        raise TypeError(f"unexpected argument {unknown[0]!r}; fields of rows are {', '.join(known)}")
    labels = fields.get("labels", False)
    kinds = {True: "next", False: None, "aligned": "aligned"}
    check_choice("labels", labels, tuple(kinds))
    return {**{name: bool(fields.get(name)) for name in known}, "labels": kinds[labels]}


def _max_document_bytes(node: recipe.Node) -> int:
    """Returns the longest record that a source of ``node`` allows, and that of `pack` at least."""
    own: int = node.arguments.get("max_document_bytes", _MAX_DOCUMENT_BYTES)
    return max(_MAX_DOCUMENT_BYTES, own, *map(_max_document_bytes, node.upstream))
