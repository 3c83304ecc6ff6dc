"""The text of HTML, as posts and feeds contain it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

#: Elements that begin a new line, and those whose content is no text for a reader.
BLOCKS = frozenset(
    {
        "p", "br", "div", "li", "ul", "ol", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
        "table", "caption", "tr", "dl", "dt", "dd", "section", "article", "header", "footer", "main", "aside",
        "nav", "figure", "figcaption", "details", "summary", "address", "form", "fieldset", "option",
    }
)  # fmt: skip
#: Cells of a table stand in one line.
CELLS = frozenset({"td", "th"})
HIDDEN = frozenset({"script", "style", "template", "title", "head"})
#: With these and the others of HTML, now or once, all that is markup: "WBC <low since" is text.
_ELEMENTS = BLOCKS | CELLS | HIDDEN | {
    "a", "abbr", "acronym", "applet", "area", "audio", "b", "base", "basefont", "bdi", "bdo", "bgsound",
    "big", "blink", "body", "button", "canvas", "center", "cite", "code", "col", "colgroup", "data",
    "datalist", "del", "dfn", "dialog", "dir", "em", "embed", "font", "frame", "frameset", "hgroup", "html",
    "i", "iframe", "img", "input", "ins", "isindex", "kbd", "keygen", "label", "legend", "link", "map",
    "mark", "marquee", "math", "menu", "menuitem", "meta", "meter", "nobr", "noframes", "noscript",
    "object", "optgroup", "output", "param", "picture", "plaintext", "progress", "q", "rb", "rp", "rt",
    "rtc", "ruby", "s", "samp", "search", "select", "slot", "small", "source", "span", "strike", "strong",
    "sub", "sup", "svg", "tbody", "textarea", "tfoot", "thead", "time", "track", "tt", "u", "var", "video",
    "wbr", "xmp",
}  # fmt: skip
#: An element of another vocabulary (`o:p`) or of a page (`my-box`).
_OTHER_ELEMENT = re.compile(r"[a-z][a-z0-9.]{0,40}[:-][a-z][a-z0-9.:-]{0,40}/?")
#: Stands for the end of a line of the source, until all of it is read.
_SOURCE_LINE = "\v"


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.states_lines = False
        """Whether there is markup of lines: then the line ends of the source are white space."""
        self._hidden = self._preformatted = 0

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in _ELEMENTS:
            self.handle_endtag(tag)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not _is_element(tag):
            self.handle_data(self.get_starttag_text() or "")
        self._hidden += tag in HIDDEN
        self._preformatted += tag == "pre"
        if tag in BLOCKS:
            self.states_lines = True
            self.parts.append("\n")
        elif tag in CELLS:
            self.parts.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if not _is_element(tag):
            self.handle_data(f"</{tag}>")
        self._hidden = max(0, self._hidden - (tag in HIDDEN))
        self._preformatted = max(0, self._preformatted - (tag == "pre"))
        if tag in BLOCKS and tag != "br":
            self.parts.append("\n")

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """An unknown section, `<![...`, is left out up to the next `>`; the base class fails."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data if self._preformatted else data.replace("\n", _SOURCE_LINE))


def _is_element(tag: str) -> bool:
    return tag in _ELEMENTS or _OTHER_ELEMENT.fullmatch(tag) is not None


def text_of(html: str) -> str:
    """The text of a fragment: lines without white space at their ends, and no empty lines. What looks like a
    tag and is no element of HTML is text.
    """
    parser = _Text()
    # Behind the last `>` there is no whole tag. Of many beginnings the parser would try each up to the end.
    whole = html.rfind(">") + 1
    parser.feed(html[:whole])
    parser.feed(html[whole:].replace("<", "&lt;"))
    parser.close()
    text = "".join(parser.parts).replace(_SOURCE_LINE, " " if parser.states_lines else "\n")
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
