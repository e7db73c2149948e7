"""The commands that load a dataset or a file, ready to be copied: all names in them are quoted.

A dataset is named by its path if its name does not lead to it: a name can be that of several datasets, and a
command reads one with a colon or a leading ``-``, ``/`` or ``.`` as something else.
"""

import math
import shlex
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import yaml

from packtok._packtok import TOKEN_FORMATS, Tokenizer
from packtok.explore.contents.catalog import Dataset
from packtok.explore.contents.packed import FileGroup, Packed
from packtok.explore.pages.rejects import Rejects
from packtok.explore.site import Site
from packtok.tokenizer.find import TOKENIZER_FILE

_CONTEXT_LENGTH = 2048
_TOKENIZER = "gpt2"
_PBIN = ".pbin"
# Characters that stand for themselves in a quoted word with escapes.
_PLAIN = frozenset(string.ascii_letters + string.digits + " /._-+=:,@%")


@dataclass(frozen=True)
class Command:
    """Something to copy."""

    title: str
    text: str


def commands_of_dataset(site: Site, dataset: Dataset, paths: Sequence[str]) -> list[Command]:
    """Returns the commands for a dataset below the base directory, whose token files have these paths."""
    base = str(site.root.folder)
    export = f"export PACKTOK_BASE_DIR={_shell(base)}\n"
    target = _target(base, dataset)
    show = f"packtok data show {_shell(target)}"
    folder = _shell(f"{base}/{dataset.folder}")
    validate = f"packtok data validate {folder}"
    if dataset.metadata.tokenized_info is None:
        show_it = Command("Show its metadata", export + show)
        # Images and sounds have no tokens.
        is_text = dataset.metadata.data_content == "text"
        tokenize_it = [_tokenize(site, dataset, target, export)] if is_text else []
        return [*tokenize_it, show_it, Command("Check it", validate)]
    files = [f"{base}/{path}" for path in paths]
    pbins = [file for file in files if file.endswith(_PBIN)]
    is_single = len(files) == len(pbins) == 1
    # Only the metadata name the files of a dataset that are not pbins, and their type.
    source = files[0] if is_single else str(dataset.metadata.path)
    has_documents = _has_documents(site, dataset, paths)
    inspected = pbins[:1] or ([source] if files else [])
    by = "name" if target == dataset.name else "path"
    return [
        Command(f"Python, by {by}", _get_dataset(base, target, has_documents)),
        Command("Python, with labels", _token_dataset(source, {})),
        Command("OLMo, in its config", _olmo(target, has_documents)),
        *([Command(_modalities_title(len(files)), _modalities(pbins[0]))] if pbins else []),
        Command("Command line", export + "\n".join([show, *map(_inspect, inspected)])),
        Command("Check it", f"packtok verify {folder}\n{validate}"),
    ]


def commands_of_file(site: Site, packed: Packed) -> list[Command]:
    """Returns the commands for one token file."""
    path = str(site.path_of(packed))
    options = _options(packed)
    flags = _flags(options)
    cat = f"packtok cat {_shell(path)} --documents 0:3{_text_or_ids(site, packed)}{flags}"
    # Modalities reads no other format.
    is_pbin = packed.reader.dialect not in TOKEN_FORMATS
    return [
        Command("Python", _token_dataset(path, options)),
        *([Command("Modalities, in its config", _modalities(path))] if is_pbin else []),
        Command("Command line", f"{_inspect(path)}{flags}\n{cat}"),
        Command("Check it", f"packtok verify {_shell(path)}{flags}"),
    ]


def command_of_rejects(site: Site, rejects: Rejects) -> Command:
    """Returns the command that lists all rejected documents."""
    paths = [_shell(f"{site.root.folder}/{name}") for name in rejects.files]
    return Command("All rejected documents", f"cat {' '.join(paths)}")


def command_of_profile(site: Site, group: FileGroup, sample_size: int) -> Command:
    """Returns the command for the profile of a larger sample."""
    path = _shell(str(site.path_of_group(group)))
    flags = _flags(_options(site.files.open(group.files[0])))
    return Command("Command line", f"packtok data profile {path}{flags} --sample-size {sample_size} --json")


def _options(packed: Packed) -> dict[str, str]:
    """Returns what the user says about a file, by the names of the arguments."""
    read_as = zip(("format", "input_dtype", "boundaries"), packed.read_as, strict=True)
    return {name: value for name, value in read_as if value is not None}


def _flags(options: Mapping[str, str]) -> str:
    return "".join(f" --{name.replace('_', '-')} {_shell(value)}" for name, value in options.items())


def _text_or_ids(site: Site, packed: Packed) -> str:
    """Returns the option of `packtok cat` that names the tokenizer, unless the command finds it itself."""
    if site.root.has_file(f"{packed.name}.{TOKENIZER_FILE}"):
        return ""
    beside = f"{packed.name.rpartition('/')[0]}/{TOKENIZER_FILE}".lstrip("/")
    if site.root.has_file(beside):
        return f" -t {_shell(f'{site.root.folder}/{beside}')}"
    name = packed.tokenizer_name
    is_builtin = name is not None and name in Tokenizer.builtin_names()
    return f" -t {name}" if is_builtin else " --ids"


def _target(base: str, dataset: Dataset) -> str:
    """Returns the name of a dataset if every command finds it by that name, and otherwise its folder."""
    name = dataset.name
    is_plain = name.isprintable() and name == name.strip() and ":" not in name
    if name and is_plain and dataset.is_named and not name.startswith(("-", "/", ".")):
        return name
    return f"{base}/{dataset.folder}"


def _tokenize(site: Site, dataset: Dataset, target: str, export: str) -> Command:
    forms = f"{dataset.folder}/tokenized/{_TOKENIZER}"
    existing = site.root.names(forms)
    subset = next(name for i in count(1) if (name := "all" if i == 1 else f"all-{i}") not in existing)
    corpora = dataset.metadata.corpuses
    several = dataset.metadata.corpus_separation_strategy == "configs" and len(corpora) > 1
    text = f"{target}:{corpora[0]}" if several else target
    output = _shell(f"{site.root.folder}/{forms}/{subset}")
    return Command(
        f"Tokenize the first of its {len(corpora):,} configs" if several else "Tokenize it",
        f"{export}packtok tokenize {_shell(text)} -t {_TOKENIZER} --output-dir {output}\npacktok data index",
    )


def _has_documents(site: Site, dataset: Dataset, paths: Sequence[str]) -> bool:
    """Returns whether the files, or what is known of them, tell where documents end."""
    if not paths or paths[0].endswith(_PBIN) or isinstance(dataset.details.get("eos_token_id"), int):
        return True
    return site.root.has_file(f"{paths[0].rpartition('/')[0]}/{TOKENIZER_FILE}")


def _get_dataset(base: str, target: str, has_documents: bool) -> str:
    without = "" if has_documents else ", create_doc_ids=False"
    return (
        f'import os\n\nimport packtok\n\nos.environ["PACKTOK_BASE_DIR"] = {base!a}\n'
        f"dataset = packtok.get_dataset({target!a}, context_length={_CONTEXT_LENGTH}{without})"
    )


def _token_dataset(path: str, options: Mapping[str, str]) -> str:
    keywords = "".join(f", {name}={value!a}" for name, value in options.items())
    return f"import packtok\n\ndataset = packtok.TokenDataset({path!a}, {_CONTEXT_LENGTH}{keywords})"


def _olmo(target: str, has_documents: bool) -> str:
    masks = "create_doc_mask: true" if has_documents else "create_doc_ids: false"
    bias = "\n      attention_bias_field: document_mask" if has_documents else ""
    return (
        "data:\n  custom_dataset:\n    name: packtok.get_dataset\n    args:\n"
        f"      metadata: {_yaml(target)}\n      context_length: {_CONTEXT_LENGTH}\n"
        f"      {masks}\n    collate_config:\n      input_id_field: token_ids{bias}"
    )


def _modalities_title(num_files: int) -> str:
    # Modalities' dataset reads one file only.
    return "Modalities, in its config" + (f": the first of {num_files:,} files" if num_files > 1 else "")


def _modalities(path: str) -> str:
    return (
        "train_dataset:\n  component_key: dataset\n  variant_key: packed_mem_map_dataset_continuous\n"
        f"  config:\n    raw_data_path: {_yaml(path)}\n    sequence_length: {_CONTEXT_LENGTH}\n"
        "    sample_key: input_ids"
    )


def _yaml(text: str) -> str:
    """Returns a quoted text for YAML, which reads the two escapes of JSON for an emoji as two characters."""
    return str(yaml.safe_dump(text, default_style='"', width=math.inf)).rstrip()


def _inspect(path: str) -> str:
    return f"packtok inspect {_shell(path)}"


def _shell(text: str) -> str:
    """Returns a word for a shell; one with characters that a terminal hides is written with escapes."""
    if text.isprintable():
        return shlex.quote(text)
    content = text.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(code) if chr(code) in _PLAIN else f"\\x{code:02x}" for code in content) + "'"
