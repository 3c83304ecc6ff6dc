"""`python -m training.relation`."""

import typer

from training.relation.run import main

if __name__ == "__main__":
    typer.run(main)
