"""Reports in the form in which the stages read them, and their outputs over the text as it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from models.acronym.naming import naming
from models.reading_form.edits import Edit
from models.reading_form.form import ReadingForm, edited, reading_form
from models.types import ADE, CaseField, Expansion, Mention, ShortQuestion, Span
from streams.records import MAX_FOLDED, ExpandedReport, Summary, TaggedReport


@dataclass(frozen=True, slots=True)
class Read:
    """A report as it came, its form, and the report in that form with all that refers to it."""

    report: Any
    form: ReadingForm
    read: Any
    folded: tuple[Span, ...] = ()
    """where the form differs from the text, long forms in the place of acronyms aside"""

    @classmethod
    def of(cls, report: Any, *, long_forms: bool = False) -> Read:
        """Reads a record of any stage; with `long_forms` an acronym that names a drug or an effect as its
        long form.
        """
        form = reading_form(report.text)
        own = folded(form)
        if long_forms and isinstance(report, ExpandedReport):
            form = edited(form, _long_forms(report.expansions, form))
        changes: dict[str, Any] = {}
        if not form.is_written:
            changes["text"] = form.text
            if isinstance(report, ExpandedReport):
                changes["expansions"] = tuple(_read_expansion(e, form) for e in report.expansions)
                changes["undecided"] = tuple(_read_expansion(e, form) for e in report.undecided)
            if isinstance(report, TaggedReport):
                changes["mentions"] = tuple(_read_mention(m, form) for m in report.mentions)
                changes["case_fields"] = tuple(_moved(f, form.in_form) for f in report.case_fields)
        if (drug := _form_of(report.drug)) != report.drug:
            changes["drug"] = drug
        if (indication := _form_of(report.indication)) != report.indication:
            changes["indication"] = indication
        return cls(report, form, replace(report, **changes) if changes else report, own)

    def written(self, output: Any) -> Any:
        """What a stage made of the report in its form, with the text as it came and places in that."""
        if self.read is self.report:
            return output
        form, report = self.form, self.report
        changes: dict[str, Any] = {"drug": report.drug, "indication": report.indication}
        if form.is_written:
            return replace(output, **changes)
        changes |= {"text": report.text, "folded": self.folded}
        if isinstance(output, ExpandedReport):
            changes["expansions"] = tuple(_written_expansion(e, form) for e in output.expansions)
            changes["undecided"] = tuple(_written_expansion(e, form) for e in output.undecided)
        if isinstance(output, TaggedReport):
            mentions = [_written_mention(m, form) for m in output.mentions]
            changes["mentions"] = tuple(mentions if output.relations else _apart(mentions))
            changes["case_fields"] = tuple(_moved(f, form.in_written) for f in output.case_fields)
        if isinstance(output, Summary):
            changes["summary"] = _written_summary(output.summary, form)
        return replace(output, **changes)


def _long_forms(expansions: Sequence[Expansion], form: ReadingForm) -> Iterator[Edit]:
    """The long forms that are read in the place of acronyms."""
    done = 0
    for expansion in sorted(naming(expansions), key=lambda e: e.start):
        span = form.in_form(expansion.start, expansion.end)
        if span.start >= done and form.text[span.start : span.end] != expansion.long_form:
            yield Edit(span.start, span.end, expansion.long_form)
            done = span.end


def _apart(mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions without those at the place of another one, which only those in the long form of one
    acronym are: of these stays the first effect, else the first mention.
    """
    kept: list[Mention] = []
    for mention in mentions:
        if not kept or (mention.start, mention.end) != (kept[-1].start, kept[-1].end):
            kept.append(mention)
        elif mention.label == ADE != kept[-1].label:
            kept[-1] = mention
    return kept


def folded(form: ReadingForm) -> tuple[Span, ...]:
    """Where the form differs from the text: the first MAX_FOLDED - 1 places, and all further as one."""
    changed = form.changed()
    if len(changed) > MAX_FOLDED:
        changed[MAX_FOLDED - 1 :] = [Span(changed[MAX_FOLDED - 1].start, changed[-1].end)]
    return tuple(changed)


def _form_of(stated: Any) -> Any:
    """A name that a source states, or several, as they are read."""
    if stated is None or isinstance(stated, str):
        return stated and reading_form(stated).text
    return tuple(reading_form(name).text for name in stated)


def _read_mention(mention: Mention, form: ReadingForm) -> Mention:
    span = form.in_form(mention.start, mention.end)
    return replace(mention, start=span.start, end=span.end, text=form.text[span.start : span.end])


def _written_mention(mention: Mention, form: ReadingForm) -> Mention:
    span = form.in_written(mention.start, mention.end)
    return replace(mention, start=span.start, end=span.end, text=form.written[span.start : span.end])


def _moved(field: CaseField, place: Callable[[int, int], Span]) -> CaseField:
    """The field at the place of its span in the other form."""
    span = place(field.start, field.end)
    return replace(field, start=span.start, end=span.end)


def _read_expansion(expansion: Expansion, form: ReadingForm) -> Expansion:
    span = form.in_form(expansion.start, expansion.end)
    short_form = form.text[span.start : span.end]
    return replace(expansion, start=span.start, end=span.end, short_form=short_form)


def _written_expansion(expansion: Expansion, form: ReadingForm) -> Expansion:
    span = form.in_written(expansion.start, expansion.end)
    short_form = form.written[span.start : span.end]
    return replace(expansion, start=span.start, end=span.end, short_form=short_form)


def _written_summary(summary: ShortQuestion, form: ReadingForm) -> ShortQuestion:
    """The words of the summary stay as they are read: it is to be shown."""
    changes: dict[str, Any] = {}
    for start, end in (("start", "end"), ("focus_start", "focus_end")):
        if getattr(summary, start) is not None:
            span = form.in_written(getattr(summary, start), getattr(summary, end))
            changes |= {start: span.start, end: span.end}
            if start == "focus_start":
                changes["focus"] = form.written[span.start : span.end]
    return replace(summary, **changes)
