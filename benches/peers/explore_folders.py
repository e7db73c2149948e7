"""Described datasets for `explore.py`, the searches among them, and their rows as a table for datasette."""

import json
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from packtok.catalog.facets import FACETS, facet_texts
from packtok.catalog.search import Query

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("docs/*/*.md", "examples/*/*.md", "*.md")
CONTEXTS = ("text", "text/books", "text/web", "code", "code/deep", "math", "multilingual", "speech")
LANGUAGES = (*("en",) * 8, *("multilingual",) * 4, "de", "fr", "es", "zh", "ja", "it", "pl", "ar", None, None)
CONTENTS = (*("text",) * 17, "image", "audio", "other")
TOKENIZERS = ("gpt2", "t5-base", "cl100k_base", "llama3", "mistral", "o200k_base", "phi2", "bloom", "qwen")
LICENSES = ("CC0-1.0", "CC-BY-4.0", "ODC-By-1.0", "Apache-2.0", None)
# A word in every description, so that a search for it matches everything.
EVERYWHERE = "dataset"


def text_words() -> list[str]:
    """Returns the words of the texts in this repository, in their order."""
    texts = [path.read_text() for glob in TEXTS for path in sorted(ROOT.glob(glob))]
    corpus = (ROOT / "examples" / "corpus.jsonl").read_text()
    texts += [json.loads(line)["text"] for line in corpus.splitlines()]
    return [word for text in texts for word in re.findall(r"[^\W\d_]+", text)]


def make_folders(base: Path, num_datasets: int) -> None:
    """Describes ``num_datasets`` datasets below ``base``, half of them tokenized forms of the others."""
    words, source = text_words(), random.Random(1)
    made = 0
    while made < num_datasets:
        start = source.randrange(len(words) - 60)
        name = f"{' '.join(words[start : start + 3])} {made}"
        folder = base / source.choice(CONTEXTS) / f"set-{made:06}"
        described = {
            "name": name,
            "description": f"A {EVERYWHERE}: {' '.join(words[start + 3 : start + 53])}.",
            "date_downloaded": f"{source.randrange(2019, 2027)}-0{source.randrange(1, 10)}-11",
            "download_source": f"https://example.org/{words[start + 54]}/{made}",
            "data_content": source.choice(CONTENTS),
            "corpuses": words[start + 55 : start + 55 + source.choice((0, 0, 0, 2, 4))],
        }
        details = {
            "documents": source.randrange(10**6),
            "language": source.choice(LANGUAGES),
            "license": source.choice(LICENSES),
        }
        _write(folder, described, details)
        made += 1
        for tokenizer in source.sample(TOKENIZERS, min(num_datasets - made, source.choice((0, 1, 1, 2)))):
            info = {
                "tokenizer": tokenizer,
                "file_prefix": "tokenized",
                "dtype": "uint16",
                "file_extension": "pbin",
            }
            tokens = int(10 ** source.uniform(4, 13))
            tokenized = described | {
                "name": "tokenized",
                "tokenized_info": info | {"parent_datasets": [name]},
            }
            _write(folder / "tokenized" / tokenizer / "all", tokenized, details | {"tokens": tokens})
            made += 1


def _write(folder: Path, described: dict[str, Any], details: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps(described, indent=2))
    (folder / "metadata.packtok.json").write_text(json.dumps({"packtok_metadata": 1, **details}, indent=2))


def queries(number: int, values: dict[str, list[str]]) -> Iterator[Query]:
    """Yields searches: words of the texts, starts of words, two words, or none; with up to two facets."""
    words, source = text_words(), random.Random(2)
    for i in range(number):
        word, start = source.choice(words), source.randrange(len(words) - 1)
        typed = (
            word,
            word[: source.randrange(2, 5)],
            " ".join(words[start : start + 2]),
            word.lower(),
            "" if i % 2 else f"{EVERYWHERE} {word[:1]}",
            EVERYWHERE if i % 10 == 5 else "",
        )[i % 6]
        facets = source.sample(FACETS, source.choice((0, 0, 1, 1, 2)))
        chosen = {facet: (source.choice(values[facet][:8]),) for facet in facets}
        yield Query(words=typed, **chosen)


def broad_queries() -> list[Query]:
    """Returns searches that match all or nearly all datasets."""
    words = ("", EVERYWHERE, "d", "da", "a", "the", f"{EVERYWHERE} t", f"a {EVERYWHERE} the")
    return [Query(words=text, sort=sort) for text in words for sort in ("best", "name", "tokens", "date")]


def write_rows(entries: list[dict[str, Any]], path: Path) -> None:
    """Writes the rows of an index as a plain table, with its facets as indexed columns and the same words."""
    path.unlink(missing_ok=True)
    facets = [f"{facet}_facet" for facet in FACETS]
    columns = ["name", "description", "source", "corpora", "context", *facets, "path", "documents", "license"]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE dataset (id INTEGER PRIMARY KEY, {', '.join(columns)})")
        for entry in entries:
            details = json.loads(entry["entry"])
            row = [
                entry["id"],
                entry["name"],
                details["description"],
                details["download_source"],
                " ".join(details["corpuses"]),
                entry["path"].rpartition("/")[0].replace("/", " "),
                *facet_texts(entry).values(),
                entry["path"],
                entry["documents"],
                entry["license"],
            ]
            connection.execute(f"INSERT INTO dataset VALUES ({', '.join('?' * len(row))})", row)
        for facet in facets:
            connection.execute(f"CREATE INDEX {facet} ON dataset ({facet})")
        connection.execute(
            f'CREATE VIRTUAL TABLE words USING fts5 ({", ".join(columns[:5])}, content="dataset", '
            "content_rowid='id', prefix='1 2 3', tokenize='unicode61')"
        )
        connection.execute("INSERT INTO words (words) VALUES ('rebuild')")
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.execute("ANALYZE")
        connection.commit()
