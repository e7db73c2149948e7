"""What the command `packtok` and `python -m packtok` start."""

import sys


def main() -> None:
    """Runs the command line. It takes a while to import, so Ctrl-C must already be no traceback here."""
    try:
        from packtok import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
