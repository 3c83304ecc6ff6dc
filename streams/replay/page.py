"""What HTML pages of commands share: their frame and style for light and dark mode, tables, and texts that
are cut at their mentions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import TypeVar

from models.types import LABELS

M = TypeVar("M")
Spanned = tuple[int, int, M]
"""Start and end of a mention, and the mention."""

STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --page: #ffffff; --line: #c4c4c4; --soft: #f3f3f3;
  --drug: #cdeef5; --ade: #ffd3cf; --indication: #d3efcf; --withdrawal: #ffe9a8; --symptom: #ecd7f7;
  --unknown: #e2e2e2; }
@media (prefers-color-scheme: dark) {
  :root { --text: #ececec; --page: #161616; --line: #555555; --soft: #232323;
    --drug: #0f4855; --ade: #6d1f1a; --indication: #1f4d1a; --withdrawal: #574400; --symptom: #4c2460;
    --unknown: #444444; } }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
article { border: 1px solid var(--line); border-radius: 6px; padding: 0 1rem .5rem; margin: 1rem 0; }
article > h3 { overflow-wrap: anywhere; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
.sides section { background: var(--soft); padding: .25rem .75rem; border-radius: 4px; min-width: 0; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
td, dd, li, h3, blockquote { unicode-bidi: isolate; }
mark { color: inherit; background: var(--unknown); border-bottom: 2px solid currentColor; }
mark.drug { background: var(--drug); } mark.ade { background: var(--ade); }
mark.indication { background: var(--indication); } mark.withdrawal { background: var(--withdrawal); }
mark.symptom { background: var(--symptom); }
mark[data-label]::after { content: " " attr(data-label); font-size: .65em; font-weight: 700; }
"""


def page(title: str, *body: str) -> str:
    """A page without scripts and without external resources."""
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>"
    )
    return "\n".join([head, f"<h1>{escape(title)}</h1>", *body, "</main>\n</body>\n</html>\n"])


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table of texts."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return [
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>',
        *body,
        "</tbody>\n</table></div>",
    ]


def cut(text: str, mentions: Iterable[Spanned[M]]) -> Iterator[tuple[int, int, list[Spanned[M]]]]:
    """Start and end of each piece of the text between two boundaries of its mentions, which may overlap, and
    the mentions that it is in, in the order of their starts. Those outside of the text are left out.
    """
    inside = [m for m in mentions if 0 <= m[0] < m[1] <= len(text)]
    starting: defaultdict[int, list[Spanned[M]]] = defaultdict(list)
    for m in inside:
        starting[m[0]].append(m)
    covering: list[Spanned[M]] = []
    for start, end in pairwise(sorted({0, len(text), *(place for m in inside for place in m[:2])})):
        # Not looked for among all mentions: a text may have thousands.
        covering = [m for m in covering if m[1] > start] + starting[start]
        yield start, end, covering


def length(mention: Spanned[M]) -> int:
    return mention[1] - mention[0]


def css_class(label: str) -> str:
    return label.lower() if label in LABELS else "unknown"
