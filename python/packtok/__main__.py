"""Entry point of the `packtok` program and of `python -m packtok`."""


def main() -> None:
    """Runs the command line."""
    from packtok import cli

    cli.main()


if __name__ == "__main__":
    from packtok import interrupts

    interrupts.run_module(main)
