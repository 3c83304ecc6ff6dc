"""Writes the files whose made parts are outdated.

python -m docs.generate
"""

from docs.generate.tables import ROOT, outdated
from training.common.program_help import run_program


def main() -> None:
    for path, text in outdated():
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)} is written")


if __name__ == "__main__":
    run_program(main)
