"""`python -m training.normalization`."""

import typer

from training.normalization.run import main

if __name__ == "__main__":
    typer.run(main)
