"""Which column of a file is the text, the id, the time, the drug and its indication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from models.files.row import UnknownColumn, UnreadableFile

#: Names that stand for a field where no column has the field's name; compared without case, with `_` for
#: spaces and hyphens.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "id": (
        "identifier", "post_id", "report_id", "case_id", "comment_id", "review_id", "tweet_id", "message_id",
        "document_id",
    ),
    "text": (
        "comment", "comments", "review", "body", "narrative", "post", "content", "message", "tweet",
        "sentence", "question", "full_text", "comment_text", "review_text", "post_text", "free_text",
    ),
    "created_at": (
        "date", "timestamp", "datetime", "created", "created_on", "date_created", "creation_date",
        "created_utc", "posted_at", "published_at", "post_date", "review_date",
    ),
    "drug": ("drugs", "drug_name", "drugname", "medicine", "medication", "product", "product_name"),
    "indication": (
        "indications", "condition", "medical_condition", "drug_indication", "reason", "reason_for_use",
        "reason_for_taking", "taken_for",
    ),
}  # fmt: skip
#: Names of columns that a message lists, and their length: in a file without a header they are texts.
_LISTED, _LONGEST_NAME = 12, 40
#: Sets of names whose fields are remembered.
_REMEMBERED = 1000


class Ambiguous(ValueError):
    """Several columns may be one field."""

    def __init__(self, field: str, names: Sequence[str]) -> None:
        super().__init__(f"more than one column may be {field}: choose one with --column {field}=NAME")
        self.names = names


class Columns:
    """Finds the fields among the names of columns.

    `chosen` maps fields to the names that a user gave, `fields` are further ones that are found by their own
    name only.
    """

    def __init__(self, chosen: Mapping[str, str] | None = None, fields: Iterable[str] = ()) -> None:
        self._chosen = dict(chosen or {})
        self._synonyms: dict[str, tuple[str, ...]] = {name: () for name in fields} | SYNONYMS
        self._known: dict[tuple[str, ...], dict[str, str]] = {}

    def fields(self, names: Sequence[str]) -> dict[str, str]:
        """Column to field; raises Ambiguous."""
        by_form: dict[str, list[str]] = {}
        for name in names:
            by_form.setdefault(_form(name), []).append(name)
        found: dict[str, str] = {}
        for field in self._synonyms:
            if (column := self._column(field, names, by_form)) is not None:
                found[column] = field
        return found

    def in_header(self, names: Sequence[str], what: str) -> dict[str, str]:
        """Column to field; raises UnreadableFile where the text is not among them, and UnknownColumn."""
        for field, name in self._chosen.items():
            if not any(_form(name) == _form(other) for other in names):
                raise UnknownColumn(f"{what} has no column {name!r} for {field}; it has {_listed(names)}")
        if twice := sorted({name for name in names if names.count(name) > 1 and name}):
            raise UnreadableFile(f"{what} has several columns of one name, {_listed(twice)}: rename them")
        try:
            found = self.fields(names)
        except Ambiguous as error:
            raise UnreadableFile(f"{what}: {error}; it may be {_listed(error.names)}") from None
        if "text" not in found.values():
            raise UnreadableFile(
                f"{what} has {_listed(names)}, none of which is known to hold the texts: "
                f"name it with --column text=NAME"
            )
        return found

    def named(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """An object with its fields in place of its names; raises Ambiguous."""
        names = tuple(content)
        found = self._known.get(names)
        if found is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[names] = self.fields(names)
        return rename(content, found)

    def _column(self, field: str, names: Sequence[str], by_form: Mapping[str, list[str]]) -> str | None:
        wanted = self._chosen.get(field)
        if (wanted or field) in names:
            return wanted or field
        own = by_form.get(_form(wanted or field), [])
        found = own or [n for s in self._synonyms[field] for n in by_form.get(s, []) if wanted is None]
        found = [name for name in found if name not in self._chosen.values() or wanted is not None]
        if len(found) > 1:
            raise Ambiguous(field, found)
        return found[0] if found else None


def rename(content: Mapping[str, Any], found: Mapping[str, str]) -> dict[str, Any]:
    """Values by field, the others by their names; a column that only bears the name of a field that is
    another one goes under `column_NAME`. Where a column holds ids every row has the field.
    """
    taken = {field for name, field in found.items() if name != field}
    renamed = {
        found.get(name, f"column_{name}" if name in taken else name): value for name, value in content.items()
    }
    if "id" in found.values():
        renamed.setdefault("id", None)
    return renamed


def _form(name: str) -> str:
    return "_".join(name.strip().casefold().replace("-", " ").replace("_", " ").split())


def _listed(names: Sequence[str]) -> str:
    if any(len(name) > _LONGEST_NAME for name in names):
        return "no line with the names of columns"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return "the columns " + ", ".join(repr(name) for name in names[:_LISTED]) + more
