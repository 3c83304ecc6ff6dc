"""`python -m training.ner`."""

import typer

from training.ner.run import main

if __name__ == "__main__":
    typer.run(main)
