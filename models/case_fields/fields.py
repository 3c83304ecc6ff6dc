"""The fields of a case that a text states."""

from __future__ import annotations

from collections.abc import Sequence

from models.case_fields.around import Told
from models.case_fields.measured import measured
from models.case_fields.told import in_words
from models.types import CaseField, Mention

#: Share of right ones, with one right and one wrong added, among those of each field that were read in fresh
#: reviews, posts and tweets (benchmarks/results/events/case_fields_read.json); `age_group` in case reports.
#: Of `pregnancy` and `dechallenge` by an earlier reading, whose counts were not kept.
PRECISION = {
    "age": 0.73, "age_group": 0.95, "sex": 0.95, "pregnancy": 0.87, "dose": 0.95, "route": 0.91,
    "duration": 0.81, "onset": 0.74, "outcome": 0.74, "dechallenge": 0.75, "serious": 0.83,
}  # fmt: skip
#: Fields of a text at most.
MOST = 64


def case_fields(text: str, mentions: Sequence[Mention], *, clinical: bool = False) -> tuple[CaseField, ...]:
    """The fields in text order, at most MOST; `clinical`: the text is a sentence of a clinical record, in
    which a person is the patient, and no post.
    """
    told = Told(text, mentions)
    found = {*measured(told), *in_words(told, clinical=clinical)}
    ordered = sorted(found, key=lambda f: (f[1], f[2], f[0]))[:MOST]
    return tuple(CaseField(*field, PRECISION[field[0]]) for field in ordered)
