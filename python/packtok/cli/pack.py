"""`packtok pack`: checks the paths in the config, calls `packtok.pack` and prints its report."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from packtok.cli import console
from packtok.cli.options import (
    PACK_FLAGS,
    JsonOption,
    PolicyOption,
    QuietOption,
    check_existing,
    check_inputs,
    check_output,
    existing_policy,
    with_options,
)
from packtok.cli.progress import engine_checks, progress_of_counts

if TYPE_CHECKING:
    from packtok.config import PackConfig
    from packtok.packer.report import PackReport

Config = Annotated[
    str | None, typer.Argument(metavar="CONFIG", help="A YAML file in the format of Modalities.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a config key; a name without a dot is in settings. Repeatable.",
    ),
]
PrintConfigOption = Annotated[
    bool, typer.Option("--print-config", help="Print the resolved config and exit.")
]


@with_options(*PACK_FLAGS)
def pack(
    config: Config = None,
    *,
    file_existence_policy: PolicyOption = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="k/N|k|auto",
            help="Pack only shard k of N, from 0, into the folder --output; auto: k from Slurm.",
        ),
    ] = None,
    set_values: SetOption = None,
    print_config: PrintConfigOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    **options: Any,
) -> None:
    """Pack a corpus into a pbin."""
    options["existing"] = existing_policy(options["existing"], file_existence_policy)
    reads_corpus = shard is None and not print_config
    checked = checked_config(
        config, options, set_values or [], reads_corpus=reads_corpus, takes_folder=not reads_corpus
    )
    if print_config:
        show_config(checked, as_json=as_json)
    else:
        pack_with(checked, shard, as_json=as_json, quiet=quiet)


def checked_config(
    config: str | None,
    options: Mapping[str, Any],
    set_values: Iterable[str] = (),
    *,
    reads_corpus: bool,
    takes_folder: bool,
) -> "PackConfig":
    """Returns the config with options and the values of ``--set`` applied, after checking all paths in it.

    Args:
        config: The path of a config file.
        options: As in `packtok.pack`.
        set_values: Arguments of ``--set``.
        reads_corpus: Whether the command reads or lists the whole corpus, so that its plain paths must exist.
        takes_folder: Whether the output may be a folder.

    Raises:
        ConfigError: If a key, a value or a path is invalid.
        FileNotFoundError: If a plain path of the corpus does not exist.
    """
    from packtok.config import load_config

    if config is not None:
        check_inputs("CONFIG", [config])
    checked = load_config(config, options, dict(map(_assignment, set_values)))
    settings = checked.settings

    def place(keyword: str, key: str) -> str:
        """Where the caller gives a value: the flag, or the key of the config."""
        is_of_config = config is not None and not options.get(keyword)
        return f"{config}: {key}" if is_of_config else f"--{keyword.replace('_', '-')}"

    with checked.redactor.guard():
        corpus = place("input", "settings.src_path")
        check_inputs(corpus, settings.src_path)
        tokenizer = checked.tokenizer.config.pretrained_model_name_or_path
        check_inputs(place("tokenizer", "tokenizer.config.pretrained_model_name_or_path"), [tokenizer])
        index_path = () if settings.index_path is None else [settings.index_path]
        check_inputs(place("index_path", "settings.index_path"), index_path)
        check_output(place("report", "settings.report"), settings.report)
        check_output(place("staging", "settings.staging"), settings.staging, is_folder=True)
        check_output(place("output", "settings.dst_path"), settings.dst_path, is_folder=takes_folder)
        if reads_corpus and settings.source is None:
            check_existing(corpus, settings.src_path)
    return checked


def show_config(checked: "PackConfig", *, as_json: bool) -> None:
    """Prints the config without secrets."""
    if as_json:
        console.as_json(checked.to_dict())
    else:
        print(checked.to_yaml(), end="")


def pack_with(checked: "PackConfig", shard: str | None, *, as_json: bool, quiet: bool) -> None:
    """Packs according to a config, and prints the result."""
    from packtok.commands.pack import pack as run

    with engine_checks(quiet=quiet), progress_of_counts(quiet=quiet) as on_progress:
        report = run(checked, shard=shard, on_warnings=console.remarks, on_progress=on_progress)
    show_report(report, as_json=as_json, quiet=quiet)


def show_report(report: "PackReport", *, as_json: bool, quiet: bool) -> None:
    """Prints a report without its warnings."""
    console.remarks(f"removed {path}, left by a killed run" for path in report.removed_temporary)
    if as_json:
        console.as_json(report.to_dict())
    elif quiet:
        print(console.printable(_line(report)))
    else:
        console.table(_rows(report))


def _assignment(text: str) -> tuple[str, Any]:
    from packtok.config.interpolation import parse_value

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise typer.BadParameter(
            f"--set {text}: expected KEY=VALUE, such as num_cpus=4 or tokenizer.config.truncation=true"
        )
    if "." not in key and key not in ("tokenizer", "settings"):
        key = f"settings.{key}"
    return key, parse_value(value)


def _accounting(report: "PackReport") -> str:
    parts = (f"{getattr(report, name):,} {name}" for name in ("packed", "empty", "blank", "rejected"))
    return f"{report.lines:,} = {' + '.join(parts)}"


def _line(report: "PackReport") -> str:
    output, documents = report.to_dict()["output"], f"{report.documents:,} documents"
    reason = _reason_kept(report).removeprefix("the existing file is ")
    state = f" (kept: {reason})" if report.skipped_existing else ""
    return f"{output}{state}: {documents}, {report.tokens:,} tokens; lines {_accounting(report)}"


def _reason_kept(report: "PackReport") -> str:
    if report.shard_index is not None:
        return "its marker says that it is complete; --existing replace packs it again"
    return "the existing file is complete and matches this config and its sources"


def _files(number: int) -> str:
    return f"{number:,} file{'' if number == 1 else 's'}"


def _input(report: "PackReport") -> str:
    if report.source is None:
        return f"{console.size(report.source_bytes)} in {_files(report.num_sources)}"
    return f"{report.source}, {report.num_sources:,} part{'' if report.num_sources == 1 else 's'}"


def _rows(report: "PackReport") -> list[tuple[str, str]]:
    public = report.to_dict()
    packed_bytes = report.source_bytes - report.resumed_bytes
    rate = (
        f" ({packed_bytes / 1e6 / report.seconds:,.1f} MB/s)"
        if report.seconds > 0 and report.source is None
        else ""
    )
    rows = [
        ("output", str(public["output"])),
        *([("shard", f"{report.shard_index} of {report.num_shards}")] if report.num_shards else []),
        ("documents", console.count(report.documents)),
        ("tokens", f"{report.tokens:,}, {report.token_bytes} bytes each"),
        ("lines", _accounting(report)),
        ("EODs in texts", console.count(report.eods_in_text)),
        ("input", _input(report)),
        ("file", console.size(report.file_bytes)),
        ("tokenizer", str(public["tokenizer_path"])),
    ]
    if report.rejected and public["rejects_path"]:
        rows.append(("rejects", str(public["rejects_path"])))
    if report.ignored:
        rows.append(("files", console.listed(public["sources"], report.num_sources)))
        rows.append(("ignored", console.ignored(public["ignored"])))
    if report.resumed_bytes:
        rows.append(("resumed", f"{console.size(report.resumed_bytes)} packed by an earlier run were kept"))
    if report.stopped_early:
        rows.append(("stopped", "at max_documents or max_tokens; the corpus has more"))
    if report.skipped_existing:
        return [*rows, ("kept", _reason_kept(report))]
    time = f"{report.seconds:.1f} s on {report.num_cpus} threads{rate}"
    return [*rows, ("engine", report.engine), ("time", time)]
