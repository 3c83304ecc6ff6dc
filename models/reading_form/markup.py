"""Entities and tags of HTML that a source left in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from html.entities import html5

from models.reading_form.edits import Edit

#: Elements that begin a new line, those that stand in one line, and those that change how words look.
_BLOCKS = frozenset(
    {
        "p", "br", "div", "li", "ul", "ol", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
        "table", "tbody", "thead", "tr", "dl", "dt", "dd", "section", "article", "html", "body",
    }
)  # fmt: skip
_CELLS = frozenset({"td", "th", "sup", "img"})
_STYLES = frozenset(
    {
        "a", "b", "i", "u", "em", "strong", "span", "font", "small", "big", "sub", "mark", "tt", "code",
        "center",
    }
)  # fmt: skip
_NAMES = "|".join(sorted(_BLOCKS | _CELLS | _STYLES, key=len, reverse=True))
_ATTRIBUTES = r"""(?:\s++[\w:-]++\s*+=\s*+(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>=`]++))"""
#: Some are written without a semicolon: where no letter can be meant that follows.
_ENTITY = re.compile(
    r"&(?:(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
    r"|#\d{2,7}(?![\d;])|#[xX][0-9a-fA-F]{2,4}(?![0-9a-fA-F;])|nbsp(?!;)|(?:amp|lt|gt|quot)(?![\w;=]))"
)
_TAG = re.compile(rf"</?+({_NAMES})(?![\w-]){_ATTRIBUTES}*+\s*+/?+>|<!--[^<>]*-->", re.IGNORECASE)
#: A struck-out word is not what its writer means.
_STRUCK = re.compile(rf"<(s|strike|del)(?![\w-]){_ATTRIBUTES}*+\s*+>[^<>]*+</\1\s*+>", re.IGNORECASE)
#: One letter in angle brackets may be a name. Only markup has one of these.
_IS_MARKUP = re.compile(
    rf"</(?:{_NAMES}|s|strike|del)\s*+>|<(?:br|p|hr)\s*+/?+>|<(?:{_NAMES}){_ATTRIBUTES}|<!--[^<>]*-->",
    re.IGNORECASE,
)


def markup_edits(text: str) -> Iterator[Edit]:
    """Entities as what they stand for; where tags show that the text is markup, a line end for a tag of a
    block, and nothing for one of a style or for what is struck out.
    """
    found = [_entity(m) for m in _ENTITY.finditer(text)] if "&" in text else []
    if "<" in text and _IS_MARKUP.search(text):
        found += [Edit(*m.span(), _place_of(m.group(1))) for m in _TAG.finditer(text)]
        found += [Edit(*m.span(), "") for m in _STRUCK.finditer(text)]
        # An entity may be in the address of a tag.
        found.sort(key=lambda e: (e.start, -e.end))
    done = 0
    for edit in found:
        if edit.start >= done and edit.new != text[edit.start : edit.end]:
            yield edit
            done = edit.end


def _entity(match: re.Match[str]) -> Edit:
    """The entity itself where there is none of that name: `unescape` takes the first letters of any word."""
    whole = match.group()
    known = whole[1] == "#" or whole[-1] != ";" or whole[1:] in html5
    return Edit(*match.span(), unescape(whole) if known else whole)


def _place_of(name: str | None) -> str:
    name = (name or "").lower()
    return "\n" if name in _BLOCKS else " " if name in _CELLS else ""
