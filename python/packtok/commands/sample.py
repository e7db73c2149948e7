"""Implements `packtok sample`: draws samples for encoder-decoder training, and packs long documents."""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packtok import _packtok
from packtok.distributed import find_shard
from packtok.errors import ConfigError, PacktokError
from packtok.launch.script import compact
from packtok.progress import Progress
from packtok.remedies import entry_point
from packtok.resuming import KEPT_NOTE, LOST_NOTE, explaining
from packtok.sample.files import files_below, tokenizer_beside
from packtok.sample.recipe import Recipe, files_of, load_recipe
from packtok.shard_folder import TaskFile, TaskFolder, planned_shards, read_plan
from packtok.sources import StrPath
from packtok.tokenizer.find import find_tokenizer

Dtype = Literal["uint16", "uint32", "int32"]
Existing = Literal["error", "skip", "replace"]
# Size of an MDS file. After a kill, a run repeats at most the samples of one file.
SIZE_LIMIT = 1 << 26


@entry_point("input", "output")
def draw_samples(
    recipe: StrPath | Mapping[str, Any] | Recipe,
    output: StrPath,
    *,
    tokens: StrPath | None = None,
    context: int | None = None,
    decoder: int | None = None,
    test: int | None = None,
    train: int | None = None,
    retrieval: int | None = None,
    retrieval_shard: int | None = None,
    retrieval_chunk: int | None = None,
    retrieval_shards: int | None = None,
    tokenizer: str | None = None,
    dtype: Dtype | None = None,
    compression: str | None = None,
    origin: bool = False,
    allow_short: bool = False,
    existing: Existing = "skip",
    shard: str | int | None = None,
    join: bool = False,
    outdir: StrPath | None = None,
    num_cpus: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Draws samples from token files into MDS folders ``output/{test,train}/DOMAIN``, and a retrieval corpus.

    Every document is on one side, by the hash of its tokens, with all of its duplicates. Which samples are
    taken depends on the tokens, the recipe and its seed, and not on files, other sides or processes.

    Args:
        recipe: ``"ab"`` or ``"concat"``, CEPE's recipes; the path of a YAML file; or a mapping like it.
        output: The folder to write to.
        tokens: The folder with the token files, in folders named after the domains.
        context: Tokens before those of the decoder; as all numbers, by default that of the recipe.
        decoder: Tokens of the decoder.
        test: Samples of the test side.
        train: Samples of the train side.
        retrieval: Chunks of each shard of the retrieval corpus.
        retrieval_shard: The only shard of the retrieval corpus to write. Default: all.
        retrieval_chunk: Tokens of a chunk.
        retrieval_shards: Number of shards of the retrieval corpus; 0 for none.
        tokenizer: Decodes the retrieval corpus. Default: the one next to the token files.
        dtype: Type of the ids. Default: the narrowest of uint16 and uint32 that fits the files.
        compression: ``"zstd:LEVEL"``. Default: none.
        origin: Whether samples have columns ``source`` and ``start``, file and position of the first token.
        allow_short: Whether fewer samples than requested are no error.
        existing: For finished outputs: ``"skip"`` keeps those of the same plan, and another is an error;
            ``"replace"`` replaces others; ``"error"``.
        shard: ``k/N`` or ``auto`` writes only part k of N of the files, for ``join``; ``k`` if ``outdir`` has
            the plan of a run.
        join: Whether to publish what all shards have written.
        outdir: A folder that all shards share, in which each leaves a marker for `packtok status`. Default:
            none.
        num_cpus: Number of threads, at most 4 of which are used. Default: all CPUs of this process.
        on_progress: As in `packtok.pack`.

    Returns:
        The numbers of samples, and for each side of each domain what became of its documents.

    Raises:
        ConfigError: If the recipe is invalid.
        FileExistsError: If an output is finished and ``existing`` is ``"error"``.
        PacktokError: If there are fewer samples than requested, an output has other samples, or a token file
            is damaged.
    """
    sampling = prepare_samples(
        recipe,
        output,
        tokens=tokens,
        context=context,
        decoder=decoder,
        test=test,
        train=train,
        retrieval=retrieval,
        retrieval_shard=retrieval_shard,
        retrieval_chunk=retrieval_chunk,
        retrieval_shards=retrieval_shards,
        tokenizer=tokenizer,
        dtype=dtype,
        compression=compression,
        origin=origin,
        allow_short=allow_short,
        existing=existing,
        outdir=outdir,
    )
    return sampling.run(shard, join=join, num_cpus=num_cpus, on_progress=on_progress)


@entry_point("input", "output")
def pack_samples(
    output: StrPath,
    *,
    tokens: StrPath,
    length: int = 65536,
    min_length: int = 0,
    by_length: Sequence[int] = (),
    compression: str | None = None,
    existing: Existing = "skip",
    shard: str | int | None = None,
    join: bool = False,
    outdir: StrPath | None = None,
    num_cpus: int | None = None,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Packs long documents into rows of an MDS folder per domain, as ProLong's training reads them.

    A row has ``input_ids``, ``indices`` (start and end of each document in it), ``length`` and ``domain``.
    Documents are packed by best fit. Only a document that is longer than a row is cut.

    Args:
        output: The folder to write to; domain ``a`` is written to ``output/a``.
        tokens: The folder with the token files. A domain is a folder in it, or a file.
        length: The most tokens of a row.
        min_length: Documents with fewer tokens are counted and not used.
        by_length: Lengths of pieces, which divide ``length``. Documents are cut into pieces of these lengths,
            the longest first; pieces of length n are packed into ``output/a/n-LENGTH``. What is left at the
            end of a document is counted and not used.
        compression: ``"zstd:LEVEL"``. Default: none.
        existing: As in `packtok.draw_samples`.
        shard: As in `packtok.draw_samples`.
        join: As in `packtok.draw_samples`.
        outdir: As in `packtok.draw_samples`.
        num_cpus: As in `packtok.draw_samples`.
        on_progress: As in `packtok.pack`.

    Returns:
        Rows and tokens, and for each domain what became of its documents.

    Raises:
        ConfigError: If there are no token files.
        PacktokError: If an output has other rows, or a token file is damaged.
    """
    sampling = prepare_packing(
        output,
        tokens=tokens,
        length=length,
        min_length=min_length,
        by_length=by_length,
        compression=compression,
        existing=existing,
        outdir=outdir,
    )
    return sampling.run(shard, join=join, num_cpus=num_cpus, on_progress=on_progress)


@dataclass(frozen=True)
class Sampling:
    """Samples that are ready to be drawn, or documents to be packed: the files are found."""

    name: Literal["draw", "pack"]
    spec: Mapping[str, Any]
    """The recipe for the compiled module."""
    files: tuple[str, ...]
    """All token files."""
    outdir: Path | None
    """The folder of the markers of shards."""
    tokenizer: str | None = None
    """The name of the tokenizer that decodes the retrieval corpus."""
    notes: Mapping[str, Any] | None = None
    """Entries of the report besides the counts."""

    @property
    def output(self) -> str:
        """The folder to write to."""
        return str(self.spec["output"])

    def run(
        self, shard: str | int | None, *, join: bool, num_cpus: int | None, on_progress: Progress | None
    ) -> dict[str, Any]:
        """Draws and publishes the samples, or those of a shard, or publishes what all shards have written."""
        if self.outdir is None:
            return self._call(_shard(shard), join=join, num_cpus=num_cpus, on_progress=on_progress)[0]
        if shard is None and not join:
            raise ConfigError("--outdir: needs --shard or --join; without them there are no shards")
        if shard is None:
            folder = self.write_plan(read_plan(self.outdir).num_shards)
            if (report := folder.report()) is not None:
                return report
            # With missing shards, this process might have to compute a plan that no task has computed.
            if missing := folder.without_marker():
                raise PacktokError(
                    f"{self.outdir}: shards are missing: {compact(missing)} of {folder.plan.num_shards:,}; "
                    "run them, then join again"
                )
            report, files = self._call(None, join=True, num_cpus=num_cpus, on_progress=on_progress)
            folder.finish_join(files, report)
            return report
        number, count = _shard(shard, self.outdir) or (0, 1)
        folder = self.write_plan(count)
        began = time.monotonic()
        report, files = self._call((number, count), join=False, num_cpus=num_cpus, on_progress=on_progress)
        folder.finish_task(
            number,
            files,
            samples=report["shard_samples"],
            tokens=report["shard_tokens"],
            seconds=time.monotonic() - began,
        )
        return report

    def write_plan(self, num_shards: int) -> TaskFolder:
        """Writes the plan of the shards if it is missing, and returns their folder.

        Raises:
            PacktokError: If the folder has the plan of another run.
        """
        if self.outdir is None:
            raise ValueError("there is no folder for the plan")
        sizes = [os.stat(path) for path in self.files]
        files = [[path, size.st_size, size.st_mtime_ns] for path, size in zip(self.files, sizes, strict=True)]
        facts = {name: value for name, value in self.spec.items() if name not in ("existing", "domains")}
        if facts.get("retrieval") is not None:
            # The shard is a separate fact, so that the error message names it if a loop over shards gives all
            # of them one folder.
            retrieval = dict(facts["retrieval"])
            facts = {"retrieval_shard": retrieval.pop("only"), **facts, "retrieval": retrieval}
        domains = [{**domain, "files": len(domain["files"])} for domain in self.spec["domains"]]
        return TaskFolder.create(
            self.outdir,
            {
                "command": f"sample ({self.name})",
                **facts,
                "domains": domains,
                "files": hashlib.sha256(json.dumps(files).encode()).hexdigest(),
            },
            num_shards,
            sum(size.st_size for size in sizes),
            replace=self.spec["existing"] == "replace",
        )

    def find_tokenizer(self) -> _packtok.Tokenizer | None:
        """Returns the tokenizer that decodes the retrieval corpus, if there is one."""
        return None if self.tokenizer is None else find_tokenizer(self.tokenizer).tokenizer

    def _call(
        self, shard: tuple[int, int] | None, *, join: bool, num_cpus: int | None, on_progress: Progress | None
    ) -> tuple[dict[str, Any], list[TaskFile]]:
        """Returns the report and the files to which it refers."""
        options: Any = {
            "shard": shard,
            "join": join,
            "num_threads": num_cpus or _packtok.available_cpus(),
            "on_progress": on_progress,
        }
        recipe = json.dumps(self.spec)
        with explaining(lambda: KEPT_NOTE if _packtok.keeps_samples(self.output) else LOST_NOTE):
            if self.name == "pack":
                report = _packtok.pack_samples(recipe, **options)
            else:
                report = _packtok.draw_samples(recipe, None if join else self.find_tokenizer(), **options)
        files = [TaskFile(file["places"], file["bytes"]) for file in report.pop("files")]
        if shard is None:
            del report["shard_samples"], report["shard_tokens"]
        return {**report, **(self.notes or {})}, files


def prepare_samples(
    recipe: StrPath | Mapping[str, Any] | Recipe,
    output: StrPath,
    *,
    tokens: StrPath | None,
    context: int | None = None,
    decoder: int | None = None,
    test: int | None = None,
    train: int | None = None,
    retrieval: int | None = None,
    retrieval_shard: int | None = None,
    retrieval_chunk: int | None = None,
    retrieval_shards: int | None = None,
    tokenizer: str | None = None,
    dtype: Dtype | None = None,
    compression: str | None = None,
    origin: bool = False,
    allow_short: bool = False,
    existing: Existing = "skip",
    outdir: StrPath | None = None,
) -> Sampling:
    """Checks the recipe and finds the files; the arguments are those of `draw_samples`."""
    checked = load_recipe(
        recipe,
        windows__context=context,
        windows__decoder=decoder,
        samples__test=test,
        samples__train=train,
        retrieval__samples=retrieval,
        retrieval__shards=retrieval_shards,
        retrieval__chunk=retrieval_chunk,
    )
    files, others = files_of(checked, tokens)
    retrieval_side = checked.retrieval
    if retrieval_side is not None and (retrieval_side.shards == 0 or retrieval_side.samples == 0):
        retrieval_side = None
    spec = {
        "output": os.fspath(output),
        "root": None if tokens is None else os.fspath(tokens),
        "domains": [
            {"name": name, "proportion": domain.proportion, "files": files[name]}
            for name, domain in checked.domains.items()
        ],
        "from": checked.windows.from_,
        "context": checked.windows.context,
        "decoder": checked.windows.decoder,
        "min_tokens": checked.windows.min_tokens or checked.windows.context + checked.windows.decoder,
        "splits": checked.splits.model_dump(),
        **checked.samples.model_dump(),
        "retrieval": None
        if retrieval_side is None
        else {**retrieval_side.model_dump(), "only": retrieval_shard},
        "seed": checked.seed,
        "dtype": dtype,
        "compression": compression,
        "origin": origin,
        "size_limit": SIZE_LIMIT,
        "allow_short": allow_short,
        "existing": existing,
    }
    listed = [file for of_domain in files.values() for file in of_domain]
    name = None if retrieval_side is None else tokenizer or tokenizer_beside(listed, tokens)
    folder = None if outdir is None else Path(outdir)
    return Sampling("draw", spec, tuple(listed), folder, name, {"files_of_no_domain": others})


def prepare_packing(
    output: StrPath,
    *,
    tokens: StrPath,
    length: int = 65536,
    min_length: int = 0,
    by_length: Sequence[int] = (),
    compression: str | None = None,
    existing: Existing = "skip",
    outdir: StrPath | None = None,
) -> Sampling:
    """Finds the files; the arguments are those of `pack_samples`."""
    domains: dict[str, list[str]] = {}
    for path, parts in files_below(Path(tokens)):
        domains.setdefault(parts[0], []).append(path)
    spec = {
        "output": os.fspath(output),
        "domains": [{"name": name, "files": files} for name, files in domains.items()],
        "length": length,
        "min_length": min_length,
        "by_length": list(by_length),
        "compression": compression,
        "size_limit": SIZE_LIMIT,
        "existing": existing,
    }
    listed = [file for files in domains.values() for file in files]
    return Sampling("pack", spec, tuple(listed), None if outdir is None else Path(outdir))


def _shard(shard: str | int | None, outdir: Path | None = None) -> tuple[int, int] | None:
    if shard is None:
        return None
    chosen = find_shard(shard)
    count = chosen.num_shards or chosen.default_num_shards or planned_shards(outdir)
    if count is None:
        raise ConfigError(f"--shard: is {str(shard)!r}, without the number of shards; give k/N")
    return chosen.shard_index, count
