"""The bytes of a file without its compression and, where ASCII is not itself in it, without its encoding."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from backports import zstd

from models.files.row import MAX_LINE, UnreadableFile

#: Bytes from which a file's form, encoding and separator are found.
SAMPLE = 65_536
_CHUNK = 65_536
#: First bytes to the name of a compression and its reader.
_COMPRESSIONS: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    b"\x28\xb5\x2f\xfd": ("zstd", zstd.ZstdFile),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
}
#: UTF-32 first: its mark begins with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
#: Without a mark: share of zero bytes at even or odd places of a text in UTF-16.
_ZERO_SHARE = 0.7
_FAILURES = (EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError, gzip.BadGzipFile)


class Stream(io.RawIOBase):
    """Bytes that are made from those of another file; ends early, with `damage` set, where they cannot be."""

    def __init__(self, read: Callable[[], bytes], below: Stream | None = None) -> None:
        self._read = read
        self._left = b""
        self._below = below
        self._damage = ""

    @property
    def damage(self) -> str:
        return self._damage or (self._below.damage if self._below else "")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            try:
                self._left = self._read()
            except _FAILURES:
                self._damage = "the compressed data are cut off or damaged here; what follows is not read"
            except OSError as error:
                if error.errno is not None:  # of the disk; bz2 raises one without a number
                    raise
                self._damage = "the compressed data are damaged here; what follows is not read"
            except UnicodeDecodeError:
                self._damage = "the file ends within a character"
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n


def with_head(file: BinaryIO | Stream, whole: bool = True) -> tuple[bytes, Stream]:
    """The first bytes of a file, and the file with them. Without `whole` it does not wait for more than a
    line, because the next one may come late.
    """
    below = file if isinstance(file, Stream) else None
    read = getattr(file, "read1", file.read)
    head, chunk = b"", b"-"
    while len(head) < SAMPLE and chunk and (whole or b"\n" not in head):
        stream = Stream(lambda: read(_CHUNK), below)
        chunk = stream.read(_CHUNK) or b""
        head += chunk
        if stream.damage:
            return head, _after(head, Stream(lambda: b"", stream))
    return head, _after(head, Stream(lambda: read(_CHUNK), below))


def _after(head: bytes, rest: Stream) -> Stream:
    parts: Iterator[bytes] = iter([head] if head else [])
    return Stream(lambda: next(parts, b"") or rest.read(_CHUNK) or b"", rest)


def decompressed(head: bytes, file: Stream) -> tuple[str, Stream]:
    """The name of the compression, empty where there is none, and the bytes that were compressed."""
    for mark, (name, opened) in _COMPRESSIONS.items():
        if head.startswith(mark):
            return name, _unpacked(opened(io.BufferedReader(file, _CHUNK)), file)
    return "", file


def _unpacked(data: Any, below: Stream) -> Stream:
    return Stream(lambda: data.read1(_CHUNK), below)


def wide_encoding(head: bytes) -> str:
    """UTF-16 or UTF-32, where a text is in one of them; else empty. A line of JSON in single bytes is in
    neither: then the mark is damage of one line.
    """
    if any(
        line[:1] == b"{" and line.rstrip()[-1:] == b"}" and b"\0" not in line for line in head.split(b"\n")
    ):
        return ""
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name
    zeros = head[:1000]
    for name, start in (("utf-16-le", 1), ("utf-16-be", 0)):
        half, other = zeros[start::2], zeros[1 - start :: 2]
        if half and half.count(0) > _ZERO_SHARE * len(half) and not other.count(0):
            return name
    return ""


def transcoded(file: Stream, encoding: str) -> Stream:
    """The bytes of a text in UTF-8; what is not in `encoding` becomes bytes that are not in UTF-8. Raises
    UnreadableFile for an unknown encoding.
    """
    try:
        wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
        decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if wide else "surrogateescape")
    except (LookupError, TypeError):
        raise UnreadableFile(f"{encoding!r} is no encoding that Python knows") from None

    def read() -> bytes:
        while data := file.read(_CHUNK):
            if text := decoder.decode(data):
                return text.encode("utf-8", "surrogatepass")
        return decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")

    return Stream(read, file)


def with_line_feeds(file: Stream) -> Stream:
    """The bytes of a file whose lines end with a carriage return alone, as of an old Macintosh."""
    return Stream(lambda: (file.read(_CHUNK) or b"").replace(b"\r", b"\n"), file)


class Lines:
    """The lines of a stream with their numbers; an iterator to which lines may be given back."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._file = io.BufferedReader(stream, _CHUNK)
        self._back: list[tuple[int, bytes]] = []
        self.number = 0

    @property
    def damage(self) -> str:
        """Why the stream ended before its end, once it has; else empty."""
        return self._stream.damage

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> tuple[int, bytes]:
        """A line with its end, cut after MAX_LINE + 1 bytes."""
        if self._back:
            return self._back.pop()
        line = last = self._file.readline(MAX_LINE + 1)
        if not line:
            raise StopIteration
        self.number += 1
        while len(line) > MAX_LINE and last and not last.endswith(b"\n"):
            last = self._file.readline(MAX_LINE)
        return self.number, line

    def give_back(self, lines: list[tuple[int, bytes]]) -> None:
        """The lines come again, in their order."""
        self._back += reversed(lines)

    def is_cut(self, line: bytes) -> bool:
        """Whether a line is the last of a stream that was cut off."""
        return not line.endswith(b"\n") and len(line) <= MAX_LINE and bool(self.damage)
