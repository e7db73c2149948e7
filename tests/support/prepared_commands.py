"""Runs a command when it is imported: forked processes share what commands make on first use (`forked_cli`).

These are the models that check configs and options, a fifth of the time of a short command.
"""

import contextlib
import io
import sys

from packtok.cli import main

_arguments = sys.argv
sys.argv = ["packtok", "pack", "-i", "a.jsonl", "-o", "a.pbin", "-t", "gpt2", "--print-config"]
with contextlib.redirect_stdout(io.StringIO()) as _config, contextlib.suppress(SystemExit):
    main()
assert "tokenizer" in _config.getvalue()
sys.argv = _arguments
