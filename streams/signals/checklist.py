"""The items of READUS-PV's checklist: where the file of a signal has each, and what a person writes.

Fusaroli et al. 2024, doi 10.1007/s40264-024-01421-9, table 1, in other words.
"""

from __future__ import annotations

#: Number; what it asks for; particulars, or headings of the file, that have it; what is to be written.
ITEMS: tuple[tuple[str, str, str, str], ...] = (
    ("1a", "Title: kind of analysis, data, database", "Title", ""),
    ("1b", "Title: drug and event", "Title", ""),
    ("2a", "Background: use of the drug, the event, what is known", "Label", "all else than the label"),
    ("2b", "Background: why the analysis was made", "", "its occasion"),
    ("2c", "Background: why such reports fit the question", "Caveat", "why they were used all the same"),
    ("3", "Objectives: event, drug, reference group, hypotheses", "Title, Comparator", "hypotheses"),
    ("4a", "Design: kind of study and of data", "Title, Data", ""),
    ("4b", "Design: all analyses, reviews of cases and literature", "Measures, Period", "what else was done"),
    ("5a", "Data: database, its keeper, coverage, codes", "Data, Models, Event", "who keeps the database"),
    ("5b", "Data: dates, preparation, exclusions", "Period, Unit, Counted", "why texts were left out before"),
    ("6a", "Variables: the population and its limits", "Data, Counted", ""),
    ("6b", "Variables: what the main ones mean", "Drug, Event, Counted", ""),
    (
        "6c",
        "Variables: groups of drugs and events, role of the drug",
        "Drug, Event",
        "groups, if any were made",
    ),
    ("6d", "Variables: other sources of data", "", "other sources than reports and labels"),
    ("7a", "Methods: descriptive analyses", "Numbers, Persons", "tests, if any were made of them"),
    ("7b", "Methods: measures, thresholds, why", "Measures, Prior of EBGM, Thresholds, Listed", "why these"),
    ("7c", "Methods: sensitivity, confounding", "Period, Comparator", "other strata and adjustments"),
    ("7d", "Methods: review of cases, causality", "", "who assessed cases, by which criteria"),
    ("7e", "Methods: statistics of other sources", "", "those of other sources, if any"),
    (
        "8a",
        "Results: reports at each stage, why some are excluded",
        "Data, Numbers",
        "reports before the store",
    ),
    (
        "8b",
        "Results: demographic and clinical characteristics",
        "Persons",
        "comparison with a reference group",
    ),
    ("9", "Results: all estimates with intervals, sensitivity", "Statistics, History", "other analyses"),
    ("10", "Results: case by case, causality", "Reports, State", "the assessment of each case"),
    ("11", "Discussion: key results; expected reaction or new", "Label, State", "results beside literature"),
    ("12a", "Discussion: external validity", "Limits", "whom the results may concern"),
    ("12b", "Discussion: relevance in practice", "State", "what follows for patients"),
    ("12c", "Discussion: further studies", "", "which are needed"),
    ("13", "Discussion: general and specific limitations", "Caveat, Limits", "biases of this drug and event"),
    ("14a", "Declarations: funding and its role", "", "all"),
    ("14b", "Declarations: conflicts of interest", "", "all"),
    ("14c", "Declarations: approvals", "", "all"),
    ("14d", "Declarations: data, code, protocol", "Software, Models", "where data and a protocol are"),
    ("Abstract", "A checklist of its own", "", "the abstract"),
)


COLUMNS = ("item", "asks_for", "stated_in", "to_be_written")


def checklist() -> list[dict[str, str]]:
    """The items as records; `to_be_written` is empty where the file has all of an item."""
    return [dict(zip(COLUMNS, row, strict=True)) for row in ITEMS]
