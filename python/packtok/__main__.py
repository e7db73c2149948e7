"""What the command `packtok` and `python -m packtok` start."""


def main() -> None:
    """Runs the command line."""
    from packtok import cli

    cli.main()


if __name__ == "__main__":
    main()
