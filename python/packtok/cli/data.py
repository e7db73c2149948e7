"""`packtok data …`: the commands under their Modalities names."""

import typer

from packtok.cli.index import create_raw_index
from packtok.cli.merge import merge_packed_data
from packtok.cli.pack import pack_encoded_data

app = typer.Typer(
    help="The same commands under their Modalities names.", no_args_is_help=True, rich_markup_mode=None
)
app.command("create_raw_index")(create_raw_index)
app.command("pack_encoded_data")(pack_encoded_data)
app.command("merge_packed_data")(merge_packed_data)
