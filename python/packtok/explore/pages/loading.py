"""The commands that load a dataset or a file, ready to be copied: all names in them are quoted."""

import json
import shlex
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from packtok.explore.contents.catalog import Dataset

_CONTEXT_LENGTH = 2048
# Characters that stand for themselves in a quoted word with escapes.
_PLAIN = frozenset(string.ascii_letters + string.digits + " /._-+=:,@%")


@dataclass(frozen=True)
class Command:
    """Something to copy."""

    title: str
    text: str


def commands_of_dataset(base: Path, dataset: Dataset, paths: Sequence[str]) -> list[Command]:
    """Returns the commands for a dataset below the base directory."""
    export = f"export PACKTOK_BASE_DIR={_shell(str(base))}\n"
    show = f"packtok data show {_shell(dataset.name)}"
    folder_word = _shell(f"{base}/{dataset.folder}")
    validate = f"packtok data validate {folder_word}"
    if dataset.metadata.tokenized_info is None:
        folder = f"{base}/{dataset.folder}/tokenized/gpt2/all"
        index, show_it = "packtok data index", Command("Show its metadata", export + show)
        pack = f"packtok tokenize {_shell(dataset.name)} -t gpt2 --output-dir {_shell(folder)}\n"
        return [Command("Tokenize it", export + pack + index), show_it, Command("Check it", validate)]
    files = [f"{base}/{path}" for path in paths]
    source = files[0] if len(files) == 1 else f"{base}/{dataset.folder}"
    return [
        Command("Python, by name", _get_dataset(base, dataset.name)),
        Command("Python, with labels", _token_dataset(source)),
        Command("OLMo, in its config", _olmo(dataset.name)),
        *([Command(_modalities_title(len(files)), _modalities(files[0]))] if files else []),
        Command("Command line", export + "\n".join([show, *(_inspect(file) for file in files[:1])])),
        Command("Check it", f"packtok verify {folder_word}\n{validate}"),
    ]


def commands_of_file(path: Path) -> list[Command]:
    """Returns the commands for one pbin."""
    return [
        Command("Python", _token_dataset(str(path))),
        Command("Modalities, in its config", _modalities(str(path))),
        Command("Command line", f"{_inspect(str(path))}\npacktok cat {_shell(str(path))} --documents 0:3"),
        Command("Check it", f"packtok verify {_shell(str(path))}"),
    ]


def _get_dataset(base: Path, name: str) -> str:
    return (
        f'import os\n\nimport packtok\n\nos.environ["PACKTOK_BASE_DIR"] = {str(base)!a}\n'
        f"dataset = packtok.get_dataset({name!a}, context_length={_CONTEXT_LENGTH})"
    )


def _token_dataset(path: str) -> str:
    return f"import packtok\n\ndataset = packtok.TokenDataset({path!a}, {_CONTEXT_LENGTH})"


def _olmo(name: str) -> str:
    return (
        "data:\n  custom_dataset:\n    name: packtok.get_dataset\n    args:\n"
        f"      metadata: {json.dumps(name)}\n      context_length: {_CONTEXT_LENGTH}\n"
        "      create_doc_mask: true\n    collate_config:\n      input_id_field: token_ids\n"
        "      attention_bias_field: document_mask"
    )


def _modalities_title(num_files: int) -> str:
    # Modalities' dataset reads one file only.
    return "Modalities, in its config" + (f": the first of {num_files:,} files" if num_files > 1 else "")


def _modalities(path: str) -> str:
    return (
        "train_dataset:\n  component_key: dataset\n  variant_key: packed_mem_map_dataset_continuous\n"
        f"  config:\n    raw_data_path: {json.dumps(path)}\n    sequence_length: {_CONTEXT_LENGTH}\n"
        "    sample_key: input_ids"
    )


def _inspect(path: str) -> str:
    return f"packtok inspect {_shell(path)}"


def _shell(text: str) -> str:
    """Returns a word for a shell; one with characters that a terminal hides is written with escapes."""
    if text.isprintable():
        return shlex.quote(text)
    content = text.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(code) if chr(code) in _PLAIN else f"\\x{code:02x}" for code in content) + "'"
