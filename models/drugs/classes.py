"""Names of drug classes ("antibiotics", "beta blockers") and of regimens ("FOLFOX"), with their members.

A row of the table has a name, its kind, the class that it names and, in the row of the class itself, the
nonproprietary names of its members. A `class` is what clinicians call it, a `word` what posts call it, a
`regimen` is given as a whole, and a `drug` is one product, which then has the place of the class. A name
that may mean something else has a `guard`: it counts where the rules of that name say that the text means
it. Of the rows of one name the first whose guard holds is meant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from models.lexicon import NameLexicon
from models.once import once
from models.rules.notation import patterns
from models.tables import DATA, read_tsv
from models.types import DrugKind, Span

BUNDLED = DATA / "drug_classes.tsv"
_SAYS = patterns("drug_classes")
_NEXT = "; "
#: Characters around a name in which a word that decides is looked for, and directly before and behind it.
_AROUND, _BESIDE = 300, 40


class Group(NamedTuple):
    """A class or regimen; or a product, then without a kind and without members."""

    name: str
    kind: DrugKind | None = None
    members: tuple[str, ...] = ()
    """nonproprietary names"""

    def has(self, generic: str) -> bool:
        """Whether a drug, or a part of a combination, is a member."""
        return any(part in self.members for part in (generic, *generic.split("/")))


class _Guard(NamedTuple):
    """Kinds of rules: what must be around a name, and directly before it; and what must not be directly
    before and behind it.
    """

    around: str = ""
    before: str = ""
    not_before: str = ""
    not_behind: str = ""

    def holds(self, around: str, before: str, behind: str) -> bool:
        if self.around and not _SAYS[self.around].search(around):
            return False
        if self.before and not _SAYS[self.before].search(before):
            return False
        if self.not_before and _SAYS[self.not_before].search(before):
            return False
        return not (self.not_behind and _SAYS[self.not_behind].match(behind))


_ALWAYS = _Guard(not_before="not_before", not_behind="not_behind")
_GUARDS = {
    "": _Guard(),
    "anabolic": _Guard(around="anabolic"),
    "bc": _Guard(around="woman", before="on_bc", not_behind="because"),
    "cancer": _Guard(around="cancer"),
    "figure": _Guard(not_before="figure"),
    "method": _Guard(not_before="method", not_behind="way"),
    "pill": _Guard(around="woman", before="on_pill", not_behind="with_food"),
    "prep": _Guard(around="hiv", not_behind="to_do"),
    "vaccine": _Guard(around="vaccine"),
}


class _Meaning(NamedTuple):
    name: str
    guard: _Guard


class DrugClasses:
    """The names of a table, in singular and plural."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        """`rows`: name, kind, class, members and guard; the last ones may lack. Raises ValueError for a class
        without a row of its members, and KeyError for an unknown guard.
        """
        self._names = NameLexicon.of(n for name, *_ in rows for n in _both(name))
        self._groups: dict[str, Group] = {}
        self._meanings: dict[str, list[_Meaning]] = {}
        for name, kind, of, members, guard, *_ in ([*row, "", ""] for row in rows):
            if kind == "drug":
                self._groups[of] = Group(of)
            elif members:
                group_kind: DrugKind = "regimen" if kind == "regimen" else "class"
                self._groups[of] = Group(of, group_kind, tuple(members.split(_NEXT)))
            for form in _both(name):
                self._meanings.setdefault(_plain(form), []).append(_Meaning(of, _GUARDS[guard]))
        named = {meaning.name for meanings in self._meanings.values() for meaning in meanings}
        if lacking := sorted(named - self._groups.keys()):
            raise ValueError(f"{lacking[0]}: no row has its members")

    @classmethod
    def load(cls, path: Path = BUNDLED) -> Self:
        """Reads a table with the columns `name`, `kind` and `class`; else ValueError."""
        return cls(list(read_tsv(path, ("name", "kind", "class"))))

    def named(self, name: str) -> Group | None:
        """The class or regimen of this name, or that has it, in any case, as a name of no other meaning."""
        return self._groups.get(name) or self._meant(name, "", "", "")

    def find(self, text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[Span, Group]]:
        """The names that the text, or a part of it, means as such, from left to right without overlap."""
        for span, _ in self._names.find(text[start:end]):
            named = Span(start + span.start, start + span.end)
            if group := self.at(text, named):
                yield named, group

    def at(self, text: str, span: Span) -> Group | None:
        """What the words at a span of the text name, if anything."""
        around = text[max(0, span.start - _AROUND) : span.end + _AROUND]
        before = text[max(0, span.start - _BESIDE) : span.start]
        return self._meant(text[span.start : span.end], around, before, text[span.end : span.end + _BESIDE])

    def _meant(self, name: str, around: str, before: str, behind: str) -> Group | None:
        meanings = self._meanings.get(_plain(name), [])
        if not meanings or not _ALWAYS.holds(around, before, behind):
            return None
        held = (m.name for m in meanings if m.guard.holds(around, before, behind))
        return next((self._groups[name] for name in held), None)


def _both(name: str) -> tuple[str, ...]:
    """A name in singular and plural; "the pill" has another meaning than "the pills"."""
    return (name,) if name.endswith("s") or name.startswith("the ") else (name, f"{name}s", f"{name}'s")


def _plain(name: str) -> str:
    return " ".join(name.lower().split())


@once
def bundled_classes() -> DrugClasses:
    return DrugClasses.load()


def group_named(name: str) -> Group | None:
    """The class or regimen of the bundled table that has this name."""
    group = bundled_classes().named(name)
    return group if group and group.kind else None


def class_named(name: str) -> str | None:
    """The name of the class that has this name; None for regimens and products."""
    group = group_named(name)
    return group.name if group and group.kind == "class" else None
