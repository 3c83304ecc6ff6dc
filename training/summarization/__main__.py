"""`python -m training.summarization`."""

import typer

from training.summarization.run import main

if __name__ == "__main__":
    typer.run(main)
