"""Rows of phrases whose initials stand in their place."""

from __future__ import annotations

from training.acronym.phrases import MOST_FORMS, ROWS, phrases, rows_of_phrases

TEXTS = [
    "The acute renal failure was due to gentamicin.",
    "A patient had acute renal failure, and rheumatic fever.",
    "Rheumatic fever and renal failure were reported.",
]


def test_phrases_are_the_ends_of_runs_without_function_words() -> None:
    assert [p.form for p in phrases(TEXTS[0])] == ["renal failure", "acute renal failure"]
    assert [p.initials for p in phrases(TEXTS[0])] == ["RF", "ARF"]
    # Punctuation, digits and double spaces end a run.
    assert [p.form for p in phrases("Red, dry eye of drug-free 2 weeks  rest")] == ["dry eye"]


def test_a_phrase_of_two_texts_gives_rows_with_other_phrases_to_choose_from() -> None:
    rows = rows_of_phrases(TEXTS, {"RF": ["rheumatoid factor"], "XY": ["xanthan yoghurt"]}, seed=0)
    assert {r.gold for r in rows} == {"renal failure", "rheumatic fever"}
    for row in rows:
        assert row.short_form == "RF"
        assert set(row.senses) == {"renal failure", "rheumatic fever", "rheumatoid factor"}
        assert row.text in {
            text[: text.lower().find(row.gold)] + "RF" + text[text.lower().find(row.gold) + len(row.gold) :]
            for text in TEXTS
        }
    counts = [sum(r.gold == gold for r in rows) for gold in ("renal failure", "rheumatic fever")]
    assert counts == [ROWS, ROWS]


def test_a_phrase_of_one_text_or_without_a_rival_gives_no_row() -> None:
    assert not rows_of_phrases(TEXTS[:1], {"RF": ["rheumatoid factor"]}, seed=0)
    assert not rows_of_phrases(["dry eye", "a dry eye"], {}, seed=0)


def test_the_right_long_form_is_among_those_that_are_sampled() -> None:
    many = {"DE": [f"dog ear {n}" for n in range(30)]}
    rows = rows_of_phrases(["dry eye", "a dry eye"], many, seed=0)
    assert len(rows) == 2
    assert all(len(r.senses) == MOST_FORMS and r.senses.count("dry eye") == 1 for r in rows)


def test_some_plurals_stand_outside_of_the_initials() -> None:
    texts = [f"The {word} events of day {n}" for n in range(40) for word in ("adverse", "acute")]
    rows = rows_of_phrases(texts, {f"AE{n}": [] for n in range(2)} | {"AE": ["air embolism"]}, seed=1)
    outside = [r for r in rows if r.text[r.span.end :].startswith("s ")]
    assert all(r.gold.endswith("event") for r in outside)
    assert all(r.gold.endswith("events") for r in rows if r not in outside)
    assert {r.text[r.span.start : r.span.end] for r in rows} == {"AE"}


def test_the_plural_that_a_text_had_is_no_wrong_long_form() -> None:
    texts = [f"The {word} of day {n}" for n in range(40) for word in ("adverse events", "acute effects")]
    forms = {"AE": ["air embolism", "adverse events"]}
    rows = [row for seed in range(9) for row in rows_of_phrases(texts, forms, seed)]
    outside = [r for r in rows if r.text[r.span.end :].startswith("s ")]
    assert {r.gold for r in outside} == {"adverse event", "acute effect"}
    for row in outside:
        # Plurals of other phrases, and the dictionary's other long forms, are still wrong ones.
        plurals = {"adverse events", "acute effects"} - {f"{row.gold}s"}
        assert set(row.senses) == {row.gold, "air embolism", *plurals}
    # Where the singular is the only other long form, the plural is written with its own s.
    both = ["an adverse event", "an adverse event again", "the adverse events", "few adverse events"]
    rows = [row for seed in range(9) for row in rows_of_phrases(both, {}, seed)]
    assert {tuple(sorted(row.senses)) for row in rows} == {("adverse event", "adverse events")}
