"""`python -m training.idiom`."""

import typer

from training.idiom.run import main

if __name__ == "__main__":
    typer.run(main)
