"""The command line: each command parses its arguments, calls one function and prints the result.

Modules that are slow to import are not imported at the top of this file or of a command's file, so that
`packtok --help` responds at once. User errors become one line on stderr, without a traceback.
"""

import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from packtok import __version__, interrupts, limits
from packtok.cli import console, standard_streams
from packtok.errors import ConfigError, PacktokError
from packtok.remedies import EntryPoint, entered, of_command

FAILED, WRONG_USAGE = 1, 2

# The commands, in the groups and the order of `packtok --help`. A command is the function of its name in the
# module of its name in this package; a group of commands is the Typer `app` of that module.
GROUPS: dict[str, tuple[str, ...]] = {
    "Write token files": (
        "pack",
        "tokenize",
        "plan",
        "join",
        "merge",
        "index",
        "convert",
        "reshape",
        "manifest",
    ),
    "Look into files": ("inspect", "cat", "count", "verify", "diff", "locate", "explore"),
    "Use a cluster": ("run", "status", "retry"),
    "Describe and prepare training data": ("data", "sample", "logits", "stream"),
    "Check tokenizers and plug-ins": ("tokenizer", "source"),
}

# Modalities' commands that train and use models, and an option of its `run`.
_COMMANDS_OF_TRAINER = ("generate_text", "warmstart", "convert_pytorch_to_hf_checkpoint")
_CONFIG_OF_TRAINER = ("--config_file_path", "--config-file-path")


class Commands(Mapping[str, Any]):
    """The commands by name, each imported when it is looked up: importing all takes as long as one runs."""

    def __init__(self) -> None:
        self._names = [name for names in GROUPS.values() for name in names]
        self._imported: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._imported:
            self._imported[name] = _command(name)
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _command(name: str) -> Any:
    """Imports a command, or a group of commands, as Click describes it."""
    module = importlib.import_module(f"packtok.cli.{name}")
    if hasattr(module, "app"):
        group = typer.main.get_group(module.app)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, context_settings=getattr(module, "CONTEXT_SETTINGS", None))(getattr(module, name))
    return typer.main.get_command(alone)


class ReportingGroup(TyperGroup):
    """Turns user errors into one line and an exit code; all other errors keep their traceback."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()  # type: ignore[assignment]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds the requested command.

        Raises:
            ConfigError: If it is one that Modalities has for models.
        """
        command, *arguments = args
        names_config = any(argument.partition("=")[0] in _CONFIG_OF_TRAINER for argument in arguments)
        if command in _COMMANDS_OF_TRAINER or (command == "run" and names_config):
            raise ConfigError(
                f"{command}: packtok prepares and loads data and has no models; run `modalities {command}`, "
                "which reads the files that packtok writes, or see docs/guides/other_trainers.md for other "
                "trainers"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands of each group under its title."""
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            # The first column has the same width in all groups; 6 is the indentation and the gap.
            lines = [
                (name.ljust(width), self.commands[name].get_short_help_str(formatter.width - 6 - width))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(lines)

    def invoke(self, ctx: Any) -> Any:
        """Runs the requested command."""
        try:
            interrupts.raise_exceptions()
            with entered(self._entry_point(ctx)):
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            interrupts.ignore()
            console.remark(console.with_notes("interrupted", error))
            raise typer.Exit(interrupts.INTERRUPTED) from None
        except BrokenPipeError:
            raise
        except ConfigError as error:
            console.remark(console.message(error))
            raise typer.Exit(WRONG_USAGE) from None
        except (PacktokError, OSError, ValueError) as error:
            console.remark(console.with_notes(limits.with_limit(console.message(error), error), error))
            raise typer.Exit(FAILED) from None
        finally:
            interrupts.ignore()

    def _entry_point(self, ctx: Any) -> EntryPoint:
        """Returns the requested command, as far as the words name one."""
        command: Any = self
        # `packtok run` stands for the command that it runs.
        words = [word for word in (*ctx._protected_args, *ctx.args) if word != "run"]
        names = ["packtok"]
        for word in words:
            subcommand = command.get_command(ctx, word) if hasattr(command, "get_command") else None
            if subcommand is not None:
                command = subcommand
                names.append(word)
        return of_command(names, command)


app = typer.Typer(
    cls=ReportingGroup,
    help="Packs text corpora into token files for language-model training.",
    no_args_is_help=True,
    add_completion=False,
    # Plain help shows every option in full, and avoids importing rich.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"packtok {__version__}")
        raise typer.Exit


@app.callback()
def _packtok(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point of the `packtok` program."""
    interrupts.answer_at_once()
    standard_streams.open_closed()
    # Any script can be printed to any terminal: characters that the encoding lacks are escaped.
    for output in (sys.stdout, sys.stderr):
        if hasattr(output, "reconfigure"):
            output.reconfigure(errors="backslashreplace")
    try:
        try:
            app(prog_name="packtok")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        standard_streams.discard(sys.stdout)
        sys.exit(FAILED)
    except OSError as error:
        standard_streams.discard(sys.stdout)
        console.remark(f"standard output: {console.message(error)}")
        sys.exit(FAILED)
