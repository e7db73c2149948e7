"""The content of one server: the folder or file that it serves, and all objects opened for it."""

from dataclasses import dataclass, field
from pathlib import Path

from packtok._packtok import Tokenizer
from packtok.explore.contents.catalog import Catalog
from packtok.explore.contents.packed import Packed, PackedFiles, ReadAs, Recent, SingleFile
from packtok.explore.contents.tokenizers import Tokenizers
from packtok.explore.files import Root
from packtok.explore.html.rendering import Pages, link
from packtok.tokenizer.find import TOKENIZER_FILE


@dataclass(frozen=True)
class Site:
    """The folder or file that is served, and the tools that read it."""

    root: Root
    single: str | None
    """The name of the only file, if one file is served."""
    catalog: Catalog | None
    """The index; ``None`` if one file is served."""
    files: PackedFiles
    tokenizers: Tokenizers
    pages: Pages
    blocks: Recent = field(default_factory=lambda: Recent(16))
    """Items of files, by file and packing."""

    results: Recent = field(default_factory=lambda: Recent(20_000))
    """Results of searches as HTML, by what they were made from."""

    def prepare(self) -> None:
        """Loads in advance what the first page needs: templates and, for a single file, the tokenizer."""
        self.pages.prepare()
        if self.single is not None:
            tokenizer = self.tokenizers.decoder(self.files.open(self.single)).tokenizer
            if tokenizer is not None:
                # The first call loads the names of the tokens.
                tokenizer.pieces([])

    def trail(self, name: str) -> list[tuple[str, str]]:
        """Returns the pages above that of a file: the text of each link and its URL."""
        folder = name.rpartition("/")[0]
        is_dataset = self.catalog is not None and self.catalog.has_dataset(folder)
        dataset_links = [(folder, str(link("dataset", folder)))] if is_dataset else []
        return [*dataset_links, (name.rpartition("/")[2], str(link("file", name)))]

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
    root = Root(resolved.parent, only=(name, f"{name}.{TOKENIZER_FILE}", TOKENIZER_FILE))
    pages = Pages(name, is_single=True)
    return _site(root, name, None, pages, tokenizer, SingleFile(str(resolved), read_as))


def _site(
    root: Root,
    single: str | None,
    catalog: Catalog | None,
    pages: Pages,
    tokenizer: Tokenizer | None,
    file: SingleFile | None = None,
) -> Site:
    return Site(root, single, catalog, PackedFiles(root, file), Tokenizers(root, tokenizer), pages)
