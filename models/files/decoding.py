"""The texts of lines: UTF-8, or Windows-1252 in a file that is not in UTF-8."""

from __future__ import annotations

from codecs import BOM_UTF8

from models.files.row import MAX_LINE

TOO_LONG = f"longer than {MAX_LINE} bytes"
NOT_UTF8 = "not in the encoding of the file"
WINDOWS = "Windows-1252"


class Decoder:
    """Decodes line by line. Each line is tried as UTF-8; another is read as Windows-1252 as long as no line
    had a character of UTF-8 beyond ASCII, so that damage in a file in UTF-8 is refused and not read as
    other letters. `strict`: the encoding is known.
    """

    def __init__(self, sample: bytes, *, strict: bool = False) -> None:
        lines = [line for line in sample.split(b"\n")[:-1] if not line.isascii()]
        valid = sum(_is_utf8(line) for line in lines)
        self._strict = strict
        self._utf8 = strict or bool(valid and 2 * valid >= len(lines))
        self.guessed = False
        """Whether a line was read as Windows-1252."""

    def __call__(self, line: bytes) -> str:
        """The text of a line; raises UnicodeDecodeError."""
        line = line.removeprefix(BOM_UTF8)
        if line.isascii():
            return line.decode("ascii")
        try:
            text = line.decode()
        except UnicodeDecodeError:
            if self._utf8:
                raise
            text = line.decode("cp1252")
            self.guessed = True
        else:
            self._utf8 = self._utf8 or not self.guessed
        return text


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
