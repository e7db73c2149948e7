"""The content of one server: the folder or file that it serves, and all objects opened for it."""

import os
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path

from packtok._packtok import REJECTS_SUFFIX, DocumentTexts, Tokenizer
from packtok.data.run import Run
from packtok.explore.contents.catalog import Catalog
from packtok.explore.contents.packed import FileGroup, Packed, PackedFiles, ReadAs, Recent, SingleFile
from packtok.explore.contents.profiles import Profiles
from packtok.explore.contents.run_files import RunFiles
from packtok.explore.contents.tokenizers import Decoder, Tokenizers
from packtok.explore.files import NotServedError, Root
from packtok.explore.html.rendering import Pages, link
from packtok.tokenizer.find import TOKENIZER_FILE

# Of the files next to the only file that is served, those that belong to it.
_ENDINGS = (f".{TOKENIZER_FILE}", REJECTS_SUFFIX)


@dataclass(frozen=True)
class Site:
    """The folder or file that is served, and the tools that read it."""

    root: Root
    single: str | None
    """The name of the only file, if one file is served."""
    catalog: Catalog | None
    """The index; ``None`` if one file is served, or those of a run."""
    files: PackedFiles
    tokenizers: Tokenizers
    pages: Pages
    blocks: Recent = field(default_factory=lambda: Recent(16))
    """Items of files that need no plan, by file and packing."""

    plans: Recent = field(default_factory=lambda: Recent(2))
    """Open files with plans, by file and context length; one may take 70 MB of disk."""

    lengths: Recent = field(default_factory=lambda: Recent(256))
    """Statistics of the lengths of documents, by the files."""

    texts: Recent = field(default_factory=lambda: Recent(8))
    """Files whose texts are searched, by file and tokenizer."""

    profiles: Profiles = field(default_factory=Profiles)
    """Profiles of files that are computed or finished."""

    tables: Recent = field(default_factory=lambda: Recent(2))
    """Lengths of all documents, by the files."""

    run: Run | None = None
    """The run whose batches are shown."""

    run_files: RunFiles = field(default_factory=RunFiles)

    results: Recent = field(default_factory=lambda: Recent(20_000))
    """Results of searches as HTML, by what they were made from."""

    def with_run(self, run: Run) -> "Site":
        """Returns the site with the pages of the batches of a run, to which all pages link."""
        self.pages.link_run()
        return replace(self, run=run)

    def prepare(self) -> None:
        """Loads in advance what the first page needs: templates and, for a single file, the tokenizer."""
        self.pages.prepare()
        tokenizer = None if self.single is None else self.own_tokenizer()
        if tokenizer is not None:
            # The first call loads the names of the tokens.
            tokenizer.pieces([])

    def own_tokenizer(self) -> Tokenizer | None:
        """Returns the tokenizer of the only file, or the one that the user named."""
        if self.single is None:
            return self.tokenizers.default
        return self.tokenizers.decoder(self.files.open(self.single)).tokenizer

    def group(self, name: str) -> FileGroup:
        """Returns the token file at a path below the folder, or the token files of the dataset in a folder.

        Raises:
            NotServedError: If there is neither, or a file cannot be read.
        """
        try:
            return self.files.group(name, [name])
        except NotServedError:
            if self.catalog is None or not self.catalog.has_dataset(name):
                raise
        return self.files.group(name, self.catalog.token_files(self.catalog.described(name)))

    def trail(self, name: str) -> list[tuple[str, str]]:
        """Returns the pages above those of a file or of a dataset's files: the text and URL of each link."""
        if self.catalog is not None and self.catalog.has_dataset(name):
            return [(name, str(link("dataset", name)))]
        dataset = self.dataset_of(name)
        dataset_links = [] if dataset is None else [(dataset, str(link("dataset", dataset)))]
        return [*dataset_links, (name.rpartition("/")[2], str(link("file", name)))]

    def dataset_of(self, name: str) -> str | None:
        """Returns the folder of the dataset that a file is next to the description of."""
        folder = name.rpartition("/")[0]
        return folder if self.catalog is not None and self.catalog.has_dataset(folder) else None

    def decoder(self, group: FileGroup) -> Decoder:
        """Returns the tokenizer of the files of a group."""
        return self.tokenizers.decoder(self.files.open(group.files[0]))

    def document_texts(self, group: FileGroup, decoder: Decoder) -> DocumentTexts:
        """Returns the texts of the files of a group.

        Raises:
            NotServedError: If a file was replaced or removed since the documents were counted.
            ValueError: If the files cannot be read together.
        """

        def opened() -> DocumentTexts:
            with self.files.paths(group) as (paths, read_as):
                return DocumentTexts(paths, tokenizer=decoder.tokenizer, read_as=read_as)

        return self.texts.value(self.key_of_texts(group, decoder), opened)

    def key_of_texts(self, group: FileGroup, decoder: Decoder) -> Hashable:
        """Returns a value that distinguishes the texts of a group from all others."""
        tokenizer = decoder.tokenizer
        return group.identities, group.files, None if tokenizer is None else tokenizer.fingerprint

    def path_of_group(self, group: FileGroup) -> Path:
        """Returns the path of a file, or of the metadata file of a dataset, for calls in Python."""
        if self.catalog is None or not group.is_dataset:
            return self.root.folder / group.name
        return self.root.folder / self.catalog.described(group.name).file

    def path_of(self, packed: Packed) -> Path:
        """Returns the path of a file, for commands."""
        return self.root.folder / packed.name


def site_of_folder(folder: Path, tokenizer: Tokenizer | None = None) -> Site:
    """Returns the site of a base directory."""
    root = Root(folder)
    pages = Pages(root.folder.name or str(root.folder), is_single=False)
    return _site(root, None, Catalog(root), pages, tokenizer)


def site_of_file(
    path: Path, tokenizer: Tokenizer | None = None, read_as: ReadAs = (None, None, None)
) -> Site:
    """Returns the site of one token file; other files are only read if they belong to it."""
    resolved = path.resolve(strict=True)
    name = resolved.name
    root = Root(resolved.parent, only=(name, *(f"{name}{ending}" for ending in _ENDINGS), TOKENIZER_FILE))
    pages = Pages(name, is_single=True)
    return _site(root, name, None, pages, tokenizer, SingleFile(str(resolved), read_as))


def site_of_run(run: Run, tokenizer: Tokenizer | None = None) -> Site:
    """Returns the site of a run: the pages of its batches and of its files, and of nothing else."""
    paths = {os.fspath(path) for source in run.sources for path in source.blocks.paths}
    # Files in a store have no pages.
    files = sorted(os.path.realpath(path) for path in paths if os.path.isfile(path))
    folder = os.path.commonpath([os.path.dirname(file) for file in files]) if files else os.getcwd()
    names = [os.path.relpath(file, folder) for file in files]
    folders = {name.rpartition("/")[0] for name in names}
    tokenizers = [f"{name}/{TOKENIZER_FILE}".lstrip("/") for name in folders]
    only = (*names, *(f"{name}{ending}" for name in names for ending in _ENDINGS), *tokenizers)
    pages = Pages("the files of a run", is_single=True)
    return _site(Root(Path(folder), only=only), None, None, pages, tokenizer).with_run(run)


def _site(
    root: Root,
    single: str | None,
    catalog: Catalog | None,
    pages: Pages,
    tokenizer: Tokenizer | None,
    file: SingleFile | None = None,
) -> Site:
    return Site(
        root,
        single,
        catalog,
        PackedFiles(root, file),
        Tokenizers(root, tokenizer),
        pages,
        run_files=RunFiles(tokenizer),
    )
