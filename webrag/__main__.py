"""Runs the command line as `python -m webrag`."""

from webrag.cli import main

if __name__ == "__main__":
    main(prog_name="webrag")
