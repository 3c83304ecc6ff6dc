"""What HTML pages share: templates in which every value is escaped, the frame of reports that commands write,
and texts that are cut at their mentions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from markupsafe import Markup, escape

from models.types import LABELS

M = TypeVar("M")
Spanned = tuple[int, int, M]
"""Start and end of a mention, and the mention."""
TEMPLATES = Path(__file__).parent / "templates"


def environment(folder: Path) -> jinja2.Environment:
    """The templates of a folder, in which every value is escaped and an unknown name is an error."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    made.filters["exact"] = exact
    return made


def document(template: str, **values: Any) -> str:
    """A page without scripts and without external resources, by a template of this package."""
    return _documents().get_template(template).render(values)


@cache
def _documents() -> jinja2.Environment:
    return environment(TEMPLATES)


def exact(text: str) -> Markup:
    """Escaped; a carriage return as a reference, because a browser would make one character of it and a line
    feed behind it, and the places in the text would move.
    """
    return Markup(escape(text).replace("\r", Markup("&#13;")))


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
