"""`packtok data prepare_instruction_tuning_data`: renders conversations, splits them and packs each part."""

from typing import Annotated

import typer

from packtok.cli import console
from packtok.cli.options import Existing, JsonOption, PolicyOption, QuietOption, check_inputs, existing_policy
from packtok.cli.progress import engine_checks, progress


def prepare_instruction_tuning_data(
    config_file_path: Annotated[
        str,
        typer.Option(
            "--config_file_path",
            "--config-file-path",
            metavar="FILE",
            help="Modalities' config: conversations, template, split, and the config for packing.",
        ),
    ],
    existing: Annotated[
        Existing | None,
        typer.Option("--existing", help="What to do if the folder of the output exists. [default: replace]"),
    ] = None,
    file_existence_policy: PolicyOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Render conversations with a chat template, split them and pack each part."""
    from packtok.commands import instruction as command

    policy = existing_policy(existing, file_existence_policy)
    check_inputs("--config_file_path", [config_file_path])
    with engine_checks(quiet=quiet), progress(quiet=quiet) as on_progress:
        report = command.prepare_instruction_tuning_data(
            config_file_path, existing=policy or "replace", on_progress=on_progress
        )
    console.remarks(report["warnings"])
    if as_json:
        console.as_json(report)
    elif quiet:
        print(console.printable(report["folder"]))
    else:
        rows = [("folder", report["folder"])]
        rows += [
            (part["part"], f"{console.count(part['conversations'])} conversations, {part['tokens']:,} tokens")
            for part in report["parts"]
        ]
        rows += [("blank lines", console.count(report["blank"]))] if report["blank"] else []
        console.table(rows)
