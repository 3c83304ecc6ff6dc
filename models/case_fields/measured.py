"""The fields of a case that are numbers: age, dose, duration of treatment, and time to onset.

A number is what the words beside it say. A time is one to onset only beside an effect with nothing between
that gets better, and a duration only behind a treatment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from models.case_fields import values
from models.case_fields.around import Around, Told
from models.quantities import Number, numbers
from models.quantities import number as number_of
from models.rules.notation import patterns
from models.types import ADE, DRUG, Mention

_SAYS = patterns("case_numbers")
#: Characters before and behind a number that are read.
BEFORE, BEHIND = 80, 60
#: Characters behind "after" in which a start stands, and behind "course" in which an effect does.
NEAR, NEXT = 50, 20
#: Units of the duration of a treatment; a shorter one is that of a dose, or of its effect.
_LONG = ("days", "weeks", "months", "years")
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
ORDINALS = {word: count for count, word in enumerate(_ORDINALS.split(), 1)}
_SEX = {"f": "female", "m": "male"}
#: A field, its span and its value.
Found = tuple[str, int, int, str | None]


def measured(told: Told) -> Iterator[Found]:
    """The fields of all numbers of a text."""
    if any(mark in told.lower for mark in ("0s", "0'", "0\u2019")):
        for match in _SAYS["decade"].finditer(told.text):
            low = int(match[1])
            yield "age", *match.span(), f"{low}..{low + 9}"
    if any(unit in told.lower for unit in (" day", " week", " month")):
        yield from _days(told)
    for number in numbers(told.text):
        yield from _fields_of(told, number)


def _fields_of(told: Told, number: Number) -> Iterator[Found]:
    text, before = told.text, told.text[max(0, number.start - BEFORE) : number.start]
    time = _SAYS["time"].match(text, number.end)
    if time is None or time.lastgroup is None:
        yield from _bare_age(text, before, number)
        yield from _dose(text, number)
        return
    unit, end = time.lastgroup, time.end()
    if half := _SAYS["half"].match(text, end):
        end, number = half.end(), number.plus(0.5)
    old = _SAYS["old"].match(text, end)
    if old or _SAYS["aged"].search(before) or _SAYS["of_person"].search(before):
        yield from _age(text, before, number, values.years(number, unit), _end_of_old(end, old))
    elif not _SAYS["ago"].match(text, end) and not _is_frequency(before, number, text[end : end + BEHIND]):
        kind = _kind_of_time(before, unit, told.around(number.start, end))
        if kind:
            yield kind, number.start, end, values.duration(number, unit)


def _is_frequency(before: str, number: Number, behind: str) -> bool:
    """Whether "a day" is how often: "three times a day", and not "a day after" or "for a day"."""
    if number.written not in ("a", "an") or _SAYS["link"].match(behind):
        return False
    return not any(_SAYS[kind].search(before) for kind in ("in_time", "for_time"))


def _end_of_old(end: int, old: re.Match[str] | None) -> int:
    """Behind "old"; a noun behind an age is no part of it."""
    return old.end() if old and old[0].rstrip().lower().endswith(("old", "olds", "age")) else end


def _age(text: str, before: str, number: Number, value: str | None, end: int) -> Iterator[Found]:
    """An age, and the sex of a person that is named behind it."""
    if value is None or number.written in ("a", "an") or _SAYS["past"].search(before):
        return
    yield "age", number.start, end, value
    behind = _SAYS["behind_age"].match(text, end)
    if behind and behind.lastgroup:
        yield "sex", *behind.span(behind.lastgroup), behind.lastgroup


def _bare_age(text: str, before: str, number: Number) -> Iterator[Found]:
    """An age without a unit of time, and the letter of the sex behind it."""
    end, value = number.end, values.years(number, "years")
    if yo := _SAYS["yo"].match(text, end):
        end = yo.end()
        value = values.years(number, "months" if yo[0].lower().endswith("m/o") else "years")
        yield from _age(text, before, number, value, end)
    elif value is None or not number.written[0].isdigit() or number.low != int(number.low):
        return
    mark = _SAYS["mark"].match(text, end)
    if mark and (yo or _SAYS["mark_before"].search(text, max(0, number.start - BEFORE), number.start)):
        if not yo:
            yield from _age(text, before, number, value, end)
        yield "sex", mark.end() - 1, mark.end(), _SEX[mark[0][-1].lower()]
    elif not yo and _is_age(text, before, end):
        yield from _age(text, before, number, value, end)


def _is_age(text: str, before: str, end: int) -> bool:
    """Whether a number alone is an age: "aged 81", "I'm 45 and"."""
    if any(_SAYS[kind].match(text, end) for kind in ("mass", "amount")):
        return False
    told = _SAYS["me_behind"].match(text, end) and _SAYS["me"].search(before)
    return bool(told or _SAYS["aged"].search(before))


def _dose(text: str, number: Number) -> Iterator[Found]:
    match = _SAYS["mass"].match(text, number.end) or _SAYS["amount"].match(text, number.end)
    if match is None or match.lastgroup is None or _SAYS["no_dose"].match(text, match.end()):
        return
    end, per = match.end(), ""
    while part := _SAYS["per"].match(text, end):
        end, per = part.end(), f"{per}/{(part.lastgroup or '').removeprefix('per_')}"
    if number.high > 0 and not _SAYS["no_dose"].match(text, end):
        yield "dose", number.start, end, values.dose(number, match.lastgroup, per)


def _days(told: Told) -> Iterator[Found]:
    """Effects on a day of treatment that is counted: "on the third day", "by day 3"."""
    for match in _SAYS["ordinal"].finditer(told.text):
        written = (match["word"] or match["count"]).lower()
        digits = written[0].isdigit()
        count = ORDINALS.get(written) or number_of(written.rstrip("stndrh") if digits else written)
        around = told.around(*match.span())
        linked = _SAYS["link"].match(around.behind)
        place = linked.start() if linked and linked[1].lower() != "on" else None
        if _SAYS["stop"].search(around.before) or not _is_told(around):
            continue
        if place is None or _begins(around.behind[:BEHIND], place, around):
            number = Number(match.start(), match.end(), count, count, written)
            unit = f"{match['unit'] or match['named']}s".lower()
            yield "onset", match.start(), match.end(), values.duration(number, unit)


def _kind_of_time(before: str, unit: str, around: Around) -> str | None:
    """Whether a time is a duration of treatment or the time to onset."""
    behind = around.behind[:BEHIND]
    in_time, during = _SAYS["in_time"].search(before), _SAYS["for_time"].search(before)
    course = _SAYS["course"].match(behind)
    if not during and _is_onset(behind, bool(in_time), bool(course), around) and _is_told(around):
        return "onset"
    linked = _SAYS["link"].match(behind)
    if linked and _SAYS["stop"].search(behind, linked.end(), linked.end() + NEAR):
        return None
    is_duration = (
        (during and _is_treated(around, during.start() - len(before)))
        or _SAYS["been"].search(before)
        or (course and not _is_effect(around, course.end()))
    )
    return "duration" if is_duration and unit in _LONG else None


def _is_onset(behind: str, in_time: bool, course: bool, around: Around) -> bool:
    """Whether a time is counted from the start of a treatment on."""
    linked = _SAYS["link"].match(behind)
    if linked and (in_time or linked[1].lower() not in ("of", "on", "from", "since")):
        return _begins(behind, linked.start(), around)
    if in_time and course:
        return True
    is_later = _SAYS["later"].match(behind) and not _SAYS["stop"].search(around.before)
    return bool(is_later) and _is_treated(around)


def _is_effect(around: Around, place: int) -> bool:
    """Whether an effect is named directly behind a place behind the time."""
    return any(m.label != DRUG and 0 <= m.start - around.end - place < NEXT for m in around.mentions)


def _is_told(around: Around) -> bool:
    """Whether the sentence has an effect of which nothing says, up to the time and in its clause, that it
    gets better or goes on. Of it the last word is read too: "headaches lessened", and not "less appetite".
    """
    effects = [m for m in around.mentions if m.label == ADE]
    behind = next((m for m in effects if m.start >= around.end), None)
    if behind:
        end = _SAYS["clause_end"].search(around.behind, behind.end - around.end)
        between = around.behind[: behind.start - around.end]
        clause = around.behind[_last_word(behind) - around.end : end.start() if end else None]
        if not any(_SAYS["benefit"].search(words) for words in (around.before, between, clause)):
            return True
    in_front = next((m for m in reversed(effects) if m.end <= around.start), None)
    if in_front is None:
        return False
    return not _SAYS["benefit"].search(around.before, max(0, _last_word(in_front) - around.first))


def _last_word(mention: Mention) -> int:
    """Where it begins, which is not where the mention does."""
    space = mention.text.rfind(" ")
    return mention.start + space + 1 if space >= 0 else mention.end


def _begins(behind: str, place: int, around: Around) -> bool:
    """Whether what a time follows is the start of a treatment and not its end."""
    words = behind[place : place + NEAR]
    stop, begin = _SAYS["stop"].search(words), _SAYS["begin"].search(words)
    if stop is not None:
        return begin is not None and begin.end() < stop.start()
    named = any(m.label == DRUG and 0 <= m.start - around.end - place < NEAR for m in around.mentions)
    return named or begin is not None


def _is_treated(around: Around, cut: int = 0) -> bool:
    """Whether the sentence before a time tells of a treatment, and of no effect behind that. `cut`: how many
    characters less than up to the time are read, a negative number.
    """
    end = around.start + cut
    words = around.before[: len(around.before) + cut][-BEFORE:]
    offset = end - len(words)
    before = [m for m in around.mentions if m.end <= end]
    treated = [m.end() for m in _SAYS["treated"].finditer(words)]
    treated += [m.end - offset for m in before if m.label == DRUG]
    effects = [m.end - offset for m in before if m.label != DRUG]
    place = max(treated, default=0)
    if place <= max(effects, default=0) or _SAYS["not_treated"].search(words, place):
        return False
    return not _SAYS["untreated"].search(words[:place])
