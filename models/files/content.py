"""What a file is by its first bytes, whatever its name says."""

from __future__ import annotations

from models.files.row import UnreadableFile

_EXPORT = "save it as CSV or Excel (.xlsx)"
#: First bytes to what the file is and what to do.
_OTHER: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF; its text must be extracted into a table first"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", f"an old (.xls, .doc) or encrypted Office file; {_EXPORT}"),
    (b"{\\rtf", "a document in Rich Text Format; put its texts into a table"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"SQLite format 3\x00", "an SQLite database; export its table as CSV"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
    (b"Rar!", "a RAR archive; unpack it first"),
    (b"ARROW1", "an Arrow (Feather) file; write it as Parquet"),
    (b"Obj\x01", "an Avro file; write it as Parquet or JSON Lines"),
    (b"ORC", "an ORC file; write it as Parquet"),
    (b"\x89HDF", "an HDF5 file; write it as Parquet"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4; decompress it first"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\x00", "a program"),
    (b"\x80\x04\x95", "a Python pickle, which is not read for safety; write it as Parquet"),
)
_MARKUP: tuple[tuple[bytes, str], ...] = (
    (b"<!doctype html", f"a web page (HTML), perhaps of a login or an error; {_EXPORT}"),
    (b"<html", f"a web page (HTML), perhaps of a login or an error; {_EXPORT}"),
    (b"<?xml", "XML; convert it to CSV or JSON Lines"),
)
#: What a zip archive is by a member, in this order.
_ARCHIVES: tuple[tuple[str, str], ...] = (
    ("word/document.xml", "a Word document; put its texts into a table"),
    ("ppt/presentation.xml", "a PowerPoint file; put its texts into a table"),
    ("xl/workbook.bin", f"a binary Excel file (.xlsb); {_EXPORT}"),
    ("content.xml", f"an OpenDocument file; {_EXPORT}"),
)
#: Share of control characters from which a file is no text.
_CONTROL_SHARE = 0.02
_CONTROLS = bytes(set(range(32)) - {9, 10, 12, 13, 27})
#: Bytes at which the second half of a tar header has its mark.
_TAR = slice(257, 262)


def check_content(sample: bytes, what: str) -> None:
    """Raises UnreadableFile for what is known to be something else, and for what is no text. `sample` is the
    beginning of a file, in an encoding in which ASCII is itself.
    """
    for start, is_ in _OTHER:
        if sample.startswith(start):
            raise UnreadableFile(f"{what} is {is_}")
    if sample[_TAR] == b"ustar":
        raise UnreadableFile(f"{what} is a tar archive; unpack it first")
    head = sample.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    for start, is_ in _MARKUP:
        if head.startswith(start):
            raise UnreadableFile(f"{what} is {is_}")
    if sample and len(sample) - len(sample.translate(None, _CONTROLS)) > _CONTROL_SHARE * len(sample):
        raise UnreadableFile(f"{what} is a binary file of an unknown kind; {_EXPORT}")


def archive_kind(members: list[str], what: str) -> UnreadableFile:
    """The error for a zip archive that is no Excel workbook."""
    for member, is_ in _ARCHIVES:
        if member in members:
            return UnreadableFile(f"{what} is {is_}")
    return UnreadableFile(f"{what} is a zip archive with {len(members)} files; unpack it first")
