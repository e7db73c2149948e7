"""The items of token files, from the arguments of `TokenDataset`; imports no torch.

`packtok.data.token_dataset` makes tensors of the items; `packtok.data.run` locates the items of a run.
"""

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from packtok._packtok import Blocks, find_or_plan
from packtok.choices import check_choice
from packtok.data.loss_markers import marker_ids
from packtok.data.raw_files import report_padding, separator_id, with_last_separator
from packtok.data.split import Split, held_out, side_of
from packtok.data.token_sources import TokenFiles, files_of_source
from packtok.fingerprint import digest
from packtok.integers import checked_integer
from packtok.sources import Source, StrPath, plan_folders

__all__ = ["DocumentMask", "Labels", "Packing", "ReadAs", "TokenItems", "common_pad_token_id", "token_items"]

# Stack level of the caller of `TokenDataset`, for warnings about files without a header.
_STACK_LEVEL = 5
Packing = Literal["concat", "document", "best_fit"]
Labels = Literal["shifted", "aligned"]
DocumentMask = Literal["compact", "dense"]
ReadAs = tuple[str | None, str | None, str | None]


@dataclass(frozen=True)
class TokenItems:
    """Items of token files, and the options that determine their fields."""

    blocks: Blocks
    context_length: int
    packing: Packing
    identity: list[Any]
    """What determines the tokens of each item besides the files."""
    pad_token_id: int
    aligned: bool
    separated_by: tuple[str, ...]
    """The options of `TokenDataset` by which a batch tells attention where documents start."""
    has_positions: bool
    """Whether a batch has ``position_ids``."""
    read_as: ReadAs
    """How `PbinReader` opens the files: format, type of ids and boundaries."""
    loss_markers: tuple[int, int] | None

    @property
    def fingerprint(self) -> str:
        """SHA-256, as hex, of everything that determines the tokens of each item: files and packing."""
        return digest([self.blocks.fingerprint, *self.identity])


def token_items(
    paths: Source,
    context_length: int,
    *,
    packing: Packing = "concat",
    labels: Labels = "shifted",
    position_ids: bool = False,
    document_ids: bool = False,
    cu_seqlens: bool = False,
    document_mask: DocumentMask | None = None,
    loss_mask: bool = False,
    loss_markers: tuple[int | str, int | str] | None = None,
    pad_token_id: int | None = None,
    by_file: bool = False,
    split: Split | None = None,
    validation_fraction: float | None = None,
    validation_last: int | float | None = None,
    validation_from: int | None = None,
    split_seed: int = 0,
    cache_dir: StrPath | None = None,
    verify: bool = False,
    eos_token: int | None = None,
    format: str | None = None,
    input_dtype: str | None = None,
    boundaries: str | None = None,
    scratch_dir: StrPath | None = None,
) -> TokenItems:
    """Returns the items of `TokenDataset` with the same arguments.

    Plans and splits that are in none of the folders of `TokenDataset` are made in ``scratch_dir``, if it is
    given, so that nothing is written next to the data.

    Raises:
        ValueError: If an option is invalid, or there is no complete item.
        PbinFormatError: If a file is damaged.
    """
    check_choice("packing", packing, ("concat", "document", "best_fit"))
    check_choice("labels", labels, ("shifted", "aligned"))
    check_choice("document_mask", document_mask, (None, "compact", "dense"))
    check_choice("split", split, (None, "train", "validation"))
    # Document boundaries are int32.
    context_length = checked_integer("context_length", context_length, least=1, below=1 << 31)
    if by_file and packing != "concat":
        raise ValueError(f"by_file needs packing 'concat', but packing is {packing!r}; remove by_file")
    rule = held_out(
        split,
        validation_fraction=validation_fraction,
        validation_last=validation_last,
        validation_from=validation_from,
        split_seed=split_seed,
    )
    identity: list[Any] = [packing, context_length, by_file, split, rule]
    token_files = files_of_source(paths, lambda remark: warnings.warn(remark, stacklevel=_STACK_LEVEL + 1))
    token_files = token_files.read_as(format, input_dtype, boundaries)
    folders: list[str] = []
    documents: dict[str, Any] = {**token_files.files, "verify": verify}
    separators = {
        "document_ids": document_ids,
        "cu_seqlens": cu_seqlens,
        "document_mask": document_mask is not None,
    }
    separated_by = tuple(name for name, is_set in separators.items() if is_set)
    if token_files.is_raw:
        _check_raw(token_files, packing, split, loss_markers)
        documents = _raw_documents(
            token_files, documents, eos_token, separates=position_ids or bool(separated_by)
        )
        identity.append(documents["separator"])
    else:
        files: Any = token_files.files
        # A plan is made in the first folder, unless one of them has it.
        own = [] if scratch_dir is None else [os.fspath(scratch_dir)]
        folders = [*own, *plan_folders(files, cache_dir)]
        documents |= side_of(files, split, rule, folders)
    blocks = _packed(documents, packing, context_length, by_file, folders)
    blocks.check_loss_columns()
    if not len(blocks):
        raise ValueError(f"{blocks.paths[0]}: no documents to make items of; pack some first")
    return TokenItems(
        blocks=blocks,
        context_length=context_length,
        packing=packing,
        identity=identity,
        pad_token_id=_pad_token_id(pad_token_id, packing, blocks),
        aligned=labels == "aligned",
        separated_by=separated_by,
        has_positions=position_ids,
        read_as=token_files.reading,
        loss_markers=None if loss_markers is None else marker_ids(loss_markers, blocks.paths[0]),
    )


def common_pad_token_id(ids: Iterable[int]) -> int:
    """Returns the id that all datasets of a mixture pad with; 0 if none of them pads.

    Raises:
        ValueError: If they pad with different ids.
    """
    pads = set(ids)
    if len(pads) > 1:
        raise ValueError(
            f"the datasets pad with different ids {sorted(pads)}; use the same pad_token_id for all"
        )
    return max(pads, default=0)


def _pad_token_id(pad_token_id: int | None, packing: Packing, blocks: Blocks) -> int:
    if pad_token_id is not None:
        return checked_integer("pad_token_id", pad_token_id, below=1 << 31)
    # "concat" needs no padding, and reading the EOD id would open a file that a manifest only lists.
    return 0 if packing == "concat" else blocks.eod_id or 0


def _check_raw(token_files: TokenFiles, packing: Packing, split: Split | None, loss_markers: object) -> None:
    """Raises a `ValueError` if an option needs to know where documents start."""
    if packing != "concat":
        option = f"packing is {packing!r}"
    elif split is not None:
        option = f"split is {split!r}"
    elif loss_markers is not None:
        option = f"loss_markers is {loss_markers!r}"
    else:
        return
    raise ValueError(
        f"{token_files.files['entries'][0][0]}: {option}, but files without a header do not record where "
        "documents start; use packing='concat' without split and loss_markers, or tokenize the data with "
        "packtok"
    )


def _raw_documents(
    token_files: TokenFiles, documents: dict[str, Any], eos_token: int | None, *, separates: bool
) -> dict[str, Any]:
    """Returns the arguments of `Blocks` for files without a header, whose padding is not read."""
    eos_id = token_files.eos_token if eos_token is None else eos_token
    separator = separator_id(token_files.files, eos_id, _STACK_LEVEL) if separates else eos_id
    if separator == 0:
        documents = {**documents, **with_last_separator(token_files.files)}
    report_padding(documents, _STACK_LEVEL)
    return {**documents, "separator": separator}


def _packed(
    documents: dict[str, Any], packing: Packing, context_length: int, by_file: bool, folders: list[str]
) -> Blocks:
    """Returns the items of ``documents`` (arguments of `Blocks`); loads or creates a plan if needed."""
    if packing == "best_fit":
        all_documents = Blocks(**documents, packing="whole")
        plan_path = find_or_plan(
            all_documents, planner="best_fit", block_size=context_length, folders=folders
        )
        return Blocks(**documents, packing="planned", plan_path=str(plan_path))
    if packing == "document":
        # One token more than inputs, because the last input needs a label.
        return Blocks(**documents, packing="document", block_size=context_length + 1)
    return Blocks(**documents, packing="rows", context_length=context_length, by_file=by_file)
