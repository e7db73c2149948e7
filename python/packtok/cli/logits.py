"""`packtok logits`: computes teacher signals for training by distillation."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from packtok.cli import console
from packtok.cli.options import JsonOption, QuietOption, check_inputs, check_output

if TYPE_CHECKING:
    from packtok.logits.signals import SignalsStart


def _named(name: str, text: str, **more: Any) -> Any:
    """Returns an option with CEPE's spelling and with hyphens."""
    return typer.Option(f"--{name}", f"--{name.replace('_', '-')}", help=text, **more)


def logits(
    input_dir: Annotated[str, _named("input_dir", "Folder with a folder of samples for each domain.")],
    model_dir: Annotated[
        str, _named("model_dir", "Folder of the model, or a name that is in the hub's local cache.")
    ],
    domain: Annotated[str, _named("domain", "Name of the domain.", metavar="NAME")],
    method: Annotated[
        Literal["topk", "sampled"],
        typer.Option(help="The most probable ids, or ids drawn from the distribution."),
    ] = "topk",
    num_decoder_tokens: Annotated[
        int, _named("num_decoder_tokens", "Decoder tokens of a sample, from the first one.")
    ] = 2048,
    num_encoder_tokens: Annotated[
        int, _named("num_encoder_tokens", "Context tokens before them, up to the last one.")
    ] = 2048,
    topk: Annotated[
        int | None, typer.Option(help="Ids per position, with --method topk. [default: 50]")
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="Draws per position, with --method sampled. [default: 12]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draws. [default: 0]")] = None,
    retrieval_input_dir: Annotated[
        str | None,
        _named("retrieval_input_dir", "Folder with a folder of retrieved passages, instead of the context."),
    ] = None,
    retrieval_k: Annotated[
        int | None, _named("retrieval_k", "Passages of a sample, from the first one. [default: 8]")
    ] = None,
    num_ret_passages: Annotated[
        int | None, _named("num_ret_passages", "No effect, as in CEPE's script; use --retrieval_k.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="k/N|k|auto", help="Compute only shard k of N, from 0; auto: k from Slurm."),
    ] = None,
    shard_id: Annotated[int | None, _named("shard_id", "CEPE's name for k of --shard.")] = None,
    num_shards: Annotated[int | None, _named("num_shards", "Number of shards, with --shard k.")] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Make one folder of all shards, without rewriting samples.")
    ] = False,
    batch_tokens: Annotated[
        int, _named("batch_tokens", "Tokens that are computed at once, at most.")
    ] = 16384,
    dtype: Annotated[Literal["bf16", "fp32"], typer.Option(help="Type of the weights.")] = "bf16",
    device: Annotated[
        str | None, typer.Option(help="Such as cpu or cuda:0. [default: a GPU if there is one]")
    ] = None,
    num_cpus: Annotated[
        int | None, typer.Option("--num-cpus", "--num_cpus", "-j", min=1, help="Threads on a CPU.")
    ] = None,
    outdir: Annotated[
        str | None,
        typer.Option(help="Folder in which each shard leaves a marker for packtok status. [default: none]"),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Start with too little disk space, or with another tokenizer."),
    ] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute what a model predicts after each token of samples, to train another model with it."""
    check_inputs("--input-dir", [input_dir])
    check_inputs("--model-dir", [model_dir])
    check_inputs("--domain", [domain])
    check_output("--outdir", outdir, is_folder=True)
    if num_ret_passages is not None:
        console.remark("warning: --num_ret_passages has no effect, as in CEPE's script; use --retrieval_k")
    shard_option = _shard(shard, shard_id)
    where: dict[str, Any] = {
        "num_decoder_tokens": num_decoder_tokens,
        "num_encoder_tokens": num_encoder_tokens,
        "retrieval_input_dir": retrieval_input_dir,
        "retrieval_k": retrieval_k,
        "num_shards": num_shards,
        "outdir": outdir,
    }
    if merge:
        _merge(input_dir, model_dir, domain, where, as_json=as_json, quiet=quiet)
        return
    own = {
        **where,
        "method": method,
        "topk": topk,
        "draws": draws,
        "seed": seed,
        "shard": shard_option,
        "batch_tokens": batch_tokens,
        "dtype": dtype,
        "device": device,
        "num_cpus": num_cpus,
        "yes": yes,
    }
    _compute(input_dir, model_dir, domain, own, as_json=as_json, quiet=quiet)


def arguments_of_run(params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of `prepare_logits` among the parameters of the command."""
    names = (
        "input_dir",
        "model_dir",
        "domain",
        "method",
        "num_decoder_tokens",
        "num_encoder_tokens",
        "topk",
        "draws",
        "seed",
        "retrieval_input_dir",
        "retrieval_k",
        "batch_tokens",
        "dtype",
    )
    return {name: params[name] for name in names}


def _shard(shard: str | None, shard_id: int | None) -> str | int | None:
    if shard is not None and shard_id is not None:
        raise typer.BadParameter("--shard and --shard_id are given; give only one")
    return shard_id if shard is None else shard


def _compute(
    input_dir: str, model_dir: str, domain: str, options: dict[str, Any], *, as_json: bool, quiet: bool
) -> None:
    from packtok.cli.progress import PlainLines
    from packtok.commands.logits import logits as command

    def start(known: "SignalsStart") -> None:
        console.remarks(known.warnings)
        if not quiet:
            console.remark(_sizes(known))

    _hide_bars_of_transformers()
    report = command(
        input_dir,
        model_dir,
        domain,
        **options,
        on_start=start,
        # Lines on terminals too, because a progress bar would count documents.
        on_progress=None if quiet else PlainLines(idle="loading the model"),
    )
    if as_json:
        console.as_json(report)
    elif quiet:
        print(console.printable(f"{report['output']}: {report['samples']:,} samples"))
    else:
        console.table(_rows(report))


def _merge(
    input_dir: str, model_dir: str, domain: str, where: dict[str, Any], *, as_json: bool, quiet: bool
) -> None:
    from packtok.commands.logits import merge_logits

    report = merge_logits(input_dir, model_dir, domain, **where)
    if as_json:
        console.as_json(report)
    elif quiet:
        print(console.printable(f"{report['output']}: {report['samples']:,} samples"))
    else:
        rows = [(name, console.count(report[name])) for name in ("parts", "files", "samples")]
        note = [("kept", "the folder was complete")] if report["kept"] else []
        console.table([("output", report["output"]), *rows, *note])


def _hide_bars_of_transformers() -> None:
    """Hides the progress bars of Transformers: every line on stderr is packtok's."""
    try:
        from transformers.utils import logging
    except ImportError:
        # The command itself reports a missing package.
        return
    logging.disable_progress_bar()


def _sizes(start: "SignalsStart") -> str:
    resumed = f", {start.kept_samples:,} kept from an earlier run" if start.kept_samples else ""
    return (
        f"{start.num_samples:,} samples{resumed}; {start.bytes_per_token} bytes per token, "
        f"{console.size(start.total_bytes)} to write, {console.size(start.free_bytes)} free"
    )


def _rows(report: dict[str, Any]) -> list[tuple[str, str]]:
    computed = report["samples"] - report["kept_samples"]
    return [
        ("output", report["output"]),
        (
            "shard",
            f"{report['shard']} of {report['num_shards']}, samples {report['start']:,} to {report['stop']:,}",
        ),
        ("samples", f"{report['samples']:,}, of which {report['kept_samples']:,} were kept"),
        ("tokens", console.count(report["tokens"])),
        ("bytes", f"{console.size(report['bytes'])}, {report['bytes_per_token']} per token"),
        ("time", f"{report['seconds']:.1f} s for {computed:,} samples on {report['device']}"),
    ]
