"""`python -m training.acronym`."""

import typer

from training.acronym.run import main

if __name__ == "__main__":
    typer.run(main)
