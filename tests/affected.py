"""Finds the tests that a changed file affects, for `tests/run.py --changed`.

The table is maintained by hand and lists only the tests most likely to fail, because CI runs all of them. The
longest matching prefix counts. A file that matches no prefix affects all tests.
"""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Path prefix: names of test files, without `test_` and `.py`.
_AFFECTED = {
    "crates/packtok-pbin/": "format merge modalities origins reader",
    "crates/packtok-pbin/src/file_system.rs": "file_systems",
    "crates/packtok-pbin/src/locked_file.rs": "faults file_systems",
    "crates/packtok-pbin/src/publish.rs": "faults file_systems merge",
    "crates/packtok-pbin/src/rename.rs": "file_systems",
    "crates/packtok-tokenizer/": (
        "engines exact families finding_tokenizers odd_tokenizers sentencepiece splits tokenizer"
    ),
    "crates/packtok-tokenizer/src/engines/": "engines exact families sentencepiece splits tokenizer",
    "crates/packtok-tokenizer/src/engines/sentencepiece/": "sentencepiece",
    "crates/packtok-tokenizer/src/load/": (
        "exact families finding_tokenizers odd_tokenizers sentencepiece tokenizer"
    ),
    "crates/packtok-store/": "stores",
    "crates/packtok-jobs/": "count faults interrupt merge pack plans shards",
    "crates/packtok-pack/": "count format merge pack reader",
    "crates/packtok-corpus/": "corpus_formats count formats hf_datasets pack sources tokenize",
    "crates/packtok-corpus/src/field/": "corpus_formats pack",
    "crates/packtok-jobs/src/journal/": "faults file_systems interrupt shards",
    "crates/packtok-pack/src/pack/": "faults interrupt max_rejects memory pack",
    "crates/packtok-formats/src/mds/": "mds sample",
    "crates/packtok-reshape/src/import/": "reshape_faults sample_import",
    "crates/packtok-reshape/src/sample/": "reshape_faults sample",
    "python/packtok/cli/sample.py": "cli json newcomer run_samples sample",
    "python/packtok/commands/sample.py": "docstrings run_samples sample",
    "python/packtok/sample/": "sample",
    "tests/reference_samples.py": "sample",
    "crates/packtok-formats/": "convert dataset get_dataset manifest mds npy reader stores token_dataset",
    "crates/packtok-dataset/": (
        "batch_memory dataset get_dataset loader locate manifest mixture permutation plans sampler "
        "token_dataset"
    ),
    "crates/packtok-stream/": (
        "stream stream_example stream_faults stream_properties stream_rows stream_states stream_trainers"
    ),
    "examples/streaming/": "snippets stream_example",
    "python/packtok/remedies.py": "config max_rejects pack remedies run_tokenize",
    "python/packtok/stream/": (
        "docstrings pinning stream stream_example stream_faults stream_fsspec stream_properties stream_rows "
        "stream_states stream_trainers"
    ),
    "crates/packtok-pack/src/shard/": "faults formats max_rejects shards",
    "crates/packtok-pack/src/verify/": "cli engines origins reader",
    "crates/packtok-py/": "cli dataset docstrings newcomer pack reader tokenizer",
    "python/packtok/": "cli config dataset docstrings json newcomer pack shards tokenizer",
    "python/packtok/data/batch_memory.py": "batch_memory token_dataset",
    "python/packtok/tokenizer/callable.py": "tokenizer",
    "crates/packtok-jobs/src/limits.rs": "limits",
    "crates/packtok-py/src/allocator.rs": "limits",
    "python/packtok/limits.py": "limits",
    "python/packtok/cli/": "cli json newcomer standard_streams",
    "python/packtok/collate.py": "collate docstrings token_dataset",
    "python/packtok/commands/": "cli docstrings json newcomer",
    "python/packtok/commands/count.py": "corpus_formats count",
    "python/packtok/plugins/": "hf_datasets sources",
    "python/packtok/catalog/": "cards get_data metadata names run_tokenize search tokenize",
    "python/packtok/commands/data.py": "cards json metadata names",
    "python/packtok/cli/explore.py": "cli explore_server json",
    "python/packtok/commands/explore.py": "cli explore explore_browser explore_hostile explore_server",
    "python/packtok/explore/": "explore explore_browser explore_costs explore_hostile explore_server",
    "python/packtok/commands/index.py": "cli modalities",
    "python/packtok/commands/instruction.py": "instruction json newcomer",
    "python/packtok/instruction/": "instruction",
    "python/packtok/data/loss_markers.py": "token_dataset",
    "python/packtok/tokenizer/length.py": "pack",
    "python/packtok/commands/join.py": "max_rejects shards",
    "python/packtok/commands/locate.py": "locate",
    "python/packtok/commands/manifest.py": "manifest",
    "python/packtok/commands/convert.py": "convert reshape_faults tokenize_npy",
    "python/packtok/commands/merge.py": "merge",
    "python/packtok/commands/shuffle.py": "shuffle",
    "python/packtok/compat/modalities.py": "shuffle",
    "python/packtok/commands/pack.py": "cli config docstrings newcomer pack shards",
    "python/packtok/commands/sample_import.py": "sample_import",
    "python/packtok/compat/cepe.py": "encoder_decoder",
    "python/packtok/commands/plan.py": "launch shards",
    "python/packtok/commands/run.py": "launch ray run_samples run_tokenize slurm",
    "python/packtok/commands/run_command.py": "launch ray run_samples run_tokenize slurm",
    "python/packtok/commands/source.py": "docstrings json sources",
    "python/packtok/commands/token_folder.py": "tokenize_npy",
    "python/packtok/commands/output_folder.py": "tokenize tokenize_npy",
    "python/packtok/commands/tokenize.py": "json ray run_tokenize slurm tokenize",
    "python/packtok/commands/tokenize_npy.py": "tokenize_npy",
    "python/packtok/commands/tokenizer.py": "count engines",
    "python/packtok/commands/verify.py": "cli reader",
    "python/packtok/config/": "cli config newcomer options pack secrets",
    "python/packtok/data/modalities.py": "dataset modalities",
    "python/packtok/data/described.py": "get_dataset trainers",
    "python/packtok/data/tatm_metadata.py": "get_data",
    "python/packtok/data/text_data.py": "get_data",
    "python/packtok/data/token_sources.py": "cli get_dataset token_dataset",
    "python/packtok/data/raw_files.py": "get_dataset",
    "python/packtok/data/tatm.py": "get_dataset trainers",
    "python/packtok/data/tatm_items.py": "get_dataset trainers",
    "python/packtok/tokenizer/neighbours.py": "finding_tokenizers neighbours sentencepiece tokenizer",
    "python/packtok/distributed.py": "loader sampler",
    "python/packtok/data/epochs.py": "loader sampler",
    "python/packtok/data/fields.py": "pinning token_dataset",
    "python/packtok/tokenizer/hub.py": "finding_tokenizers neighbours",
    "python/packtok/logits/": "logits",
    "python/packtok/commands/logits.py": "json logits run_samples",
    "python/packtok/data/distillation.py": "logits",
    "python/packtok/integrations/": "trainers",
    "python/packtok/interrupts.py": "interrupt",
    "python/packtok/launch/": "launch ray run_samples run_tokenize slurm",
    "python/packtok/data/loader.py": "loader loader_examples pinning sampler",
    "python/packtok/data/mixture.py": "docstrings mixture",
    "python/packtok/data/sampler.py": "loader sampler",
    "python/packtok/shard_folder.py": "launch run_samples shards",
    "python/packtok/data/contexts.py": "encoder_decoder",
    "python/packtok/data/encoder_decoder.py": "encoder_decoder",
    "python/packtok/data/split.py": "dataset token_dataset",
    "python/packtok/data/state.py": "loader locate sampler",
    "python/packtok/store/packing.py": "stores",
    "python/packtok/store/staging.py": "stores",
    "python/packtok/data/token_dataset.py": "batch_memory docstrings pinning token_dataset",
    "python/packtok/tokenizer/find.py": "finding_tokenizers neighbours tokenizer",
    ".github/": "",
    "CHANGELOG.md": "",
    "CITATION.cff": "",
    "CODE_OF_CONDUCT.md": "",
    "CONTRIBUTING.md": "",
    "SECURITY.md": "",
    "benches/": "",
    "docs/": "snippets",
    "examples/": "snippets",
    "examples/getting_started/": "getting_started snippets",
    "scripts/": "gpu_check",
    "examples/loaders/": "loader_examples snippets",
    "README.md": "snippets",
    "slurm/": "slurm",
    "tests/affected.py": "affected",
    "tests/clippy/": "",
    "tests/fuzz/": "",
    "tests/modalities_training.py": "trainers",
    "tests/olmo_core_training.py": "trainers",
    "tests/streaming_reading.py": "mds",
    "tests/mds_samples.py": "mds sample_import",
    "tests/cepe_samples.py": "encoder_decoder",
    "tests/olmo_training.py": "trainers",
    "tests/published_files.py": "file_systems",
    "tests/ranks.py": "loader sampler",
    "tests/ray_cluster.py": "ray",
    "tests/reference_order.py": "loader locate mixture permutation sampler",
    "tests/reference_plans.py": "dataset plans",
    "tests/reference_rows.py": "dataset token_dataset",
    "tests/run.py": "affected",
    "tests/s3_server.py": "stores",
    "tests/seccomp.py": "file_systems",
    "tests/slurm_cluster.py": "slurm",
    "tests/snippets.py": "snippets",
    "tests/stories.py": "loader_examples",
    "tests/worker_memory.py": "memory",
}
CRATES = (
    "benches",
    "packtok-pack",
    "packtok-corpus",
    "packtok-dataset",
    "packtok-formats",
    "packtok-jobs",
    "packtok-pbin",
    "packtok-reshape",
    "packtok-store",
    "packtok-stream",
    "packtok-tokenizer",
)
# Files that the tests of all crates depend on.
_OF_ALL_CRATES = ("Cargo.toml", "Cargo.lock", "tests/golden/")


@dataclass(frozen=True)
class Affected:
    """The tests that a change affects."""

    python: tuple[str, ...]
    """Names of files in ``tests``."""
    crates: tuple[str, ...]
    """Folders of crates whose Rust tests are affected."""

    @property
    def names(self) -> list[str]:
        """Returns all names, for display."""
        return [*self.crates, *self.python]


def changed_files(root: Path) -> list[str]:
    """Returns the files that differ from where this branch left main, including untracked ones."""

    def lines(*command: str) -> list[str]:
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    for main in ("main", "origin/main"):
        if (
            subprocess.run(
                ["git", "rev-parse", "-q", "--verify", main], cwd=root, capture_output=True
            ).returncode
            == 0
        ):
            (base,) = lines("merge-base", "HEAD", main)
            break
    else:
        base = "HEAD"
    known, new = lines("diff", "--name-only", base), lines("ls-files", "--others", "--exclude-standard")
    return sorted({*known, *new})


def tests_of(files: Iterable[str]) -> Affected:
    """Returns the tests that changes of these files affect, by the table above."""
    everything = sorted(path.name for path in Path(__file__).parent.glob("test_*.py"))
    found: set[str] = set()
    crates: set[str] = set()
    for file in files:
        of_all = file.startswith(_OF_ALL_CRATES)
        crates.update(crate for crate in CRATES if of_all or f"/{crate}/" in f"/{file}")
        name = file.removeprefix("tests/")
        if name in everything:
            found.add(name)
            continue
        prefixes = [prefix for prefix in _AFFECTED if file.startswith(prefix)]
        if prefixes:
            found.update(f"test_{one}.py" for one in _AFFECTED[max(prefixes, key=len)].split())
        else:
            found.update(everything)
    return Affected(tuple(sorted(found)), tuple(one for one in CRATES if one in crates))
