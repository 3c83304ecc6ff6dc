"""Reports that are ingested by hand, with the same masks and hashes as those of a source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streams.codec import BadRecord
from streams.input_reports import report_of
from streams.intake.intake import Privacy, drugs_without_person, indication_without_person
from streams.intake.masking import MAX_MASKED, mask
from streams.records import MAX_TEXT, Report


def masked_report(content: dict[str, Any], privacy: Privacy) -> Report:
    """The report in an object, with what identifies people masked in its text, and the hash of its
    `author`, a handle. Unknown fields are left out and counted: they may hold anything. Raises BadRecord;
    changes `content`.
    """
    author = content.pop("author", None)
    if isinstance(author, int) and not isinstance(author, bool):
        author = str(author)  # the id of an account, as a source takes it
    report = report_of(content)
    regions = privacy.regions_with(report.country)
    text, masked = mask(report.text, regions)
    if len(text) > MAX_TEXT or len(masked) > MAX_MASKED:
        raise BadRecord(f"text: longer than {MAX_TEXT} characters, or more than {MAX_MASKED} of them masked")
    drugs = drugs_without_person(report.stated_drugs, regions)
    keeps_person = not report.aggregate_only
    return replace(
        report,
        text=text,
        drug=drugs[0] if len(drugs) == 1 else drugs or None,
        indication=indication_without_person(report.indication, regions),
        masked=masked,
        author=privacy.keys.hash(author) if isinstance(author, str) and author and keeps_person else None,
        permalink=report.permalink if keeps_person else None,
        meta={},
        meta_dropped=report.meta_dropped + len(report.meta),
    )
