from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

from py3langid.langid import LanguageIdentifier

from models import language
from models.case_fields.fields import case_fields
from models.normalization.known_wordings import Known, KnownWordings
from models.once import once
from models.types import (
    ADE,
    DRUG,
    INDICATION,
    Candidate,
    Coding,
    Expansion,
    LongForm,
    Mention,
    Query,
    Relation,
    Stated,
)
from streams import metrics
from streams.agents import ner, normalization
from streams.agents.pipeline import expand, stage_named
from streams.records import Report, TaggedReport
from tests.fakes import FakeTagger

TEXT = "Aspirin and MTX for RA caused TEN and rash"


def mention(surface: str, label: str, generic: str | None = None) -> Mention:
    start = TEXT.index(surface)
    return Mention(start, start + len(surface), surface, label, 0.9, generic)


ASPIRIN, MTX = mention("Aspirin", DRUG, "aspirin"), mention("MTX", DRUG, "methotrexate")
RA, TEN, RASH = mention("RA", INDICATION), mention("TEN", ADE), mention("rash", ADE)
REPORT = TaggedReport(id="r", text=TEXT, mentions=(ASPIRIN, MTX, RA, TEN, RASH))


def test_an_acronym_below_the_margin_is_kept_as_candidates_and_replaced_nowhere() -> None:
    sure = Expansion(MTX.start, MTX.end, "MTX", "methotrexate", 0.9, "dictionary")
    candidates = (LongForm("toxic epidermal necrolysis", 0.4), LongForm("tension", 0.35))
    open_ = Expansion(TEN.start, TEN.end, "TEN", candidates[0].long_form, 0.4, "dictionary", candidates)

    class Expander:
        def predict(self, batch: Sequence[str]) -> list[list[Expansion]]:
            return [[sure, open_] for _ in batch]

    (record,) = expand(Expander(), [Report(id="r", text=TEXT)])
    assert (record.expansions, record.undecided) == ((sure,), (open_,))
    tagged = replace(
        REPORT, expansions=record.expansions, undecided=record.undecided, releases={"acronym": "0" * 12}
    )
    coder = EchoCoder()
    normalization.predict(coder, [tagged])
    assert coder.calls[0][0].surface == "TEN"


class EchoCoder:
    """Codes every surface form to itself, `rash` to NIL."""

    def __init__(self) -> None:
        self.calls: list[Sequence[Query]] = []

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        self.calls.append(batch)
        return [
            Coding((Candidate(q.surface, q.surface, "Skin", 0.9),), q.surface == "rash", len(q.surface) / 10)
            for q in batch
        ]


def test_adverse_events_of_a_batch_are_coded_in_one_call_and_nil_keeps_its_candidates() -> None:
    coder = EchoCoder()
    first, second = normalization.predict(coder, [REPORT, REPORT])
    assert len(coder.calls) == 1
    assert [e.mention for e in first.events] == [3, 4]
    assert first == second
    # In a post TEN is read as what it is expected to mean.
    assert [e.context_weight for e in first.events] == [2.6, 0.4]
    (coded,) = normalization.predict(EchoCoder(), [REPORT])
    nil = coded.events[1]
    assert (nil.llt, nil.pt, nil.soc, nil.nil) == (None, None, None, True)
    assert nil.candidates[0].pt == "rash"
    (coded,) = normalization.predict(EchoCoder(), [replace(REPORT, mentions=())])
    assert coded.events == ()


class SeriousCoder:
    """Codes every surface form to a serious term."""

    def predict(self, batch: Sequence[Query]) -> list[Coding]:
        return [Coding((Candidate("MI", "MI", "Heart", 1.0),), False, serious=True) for _ in batch]


def test_a_short_text_beside_a_stated_drug_is_coded_as_it_stands_and_a_list_by_its_parts() -> None:
    def coded(text: str, *mentions: Mention, **known: Any) -> list[tuple[str, str | None]]:
        report = replace(REPORT, text=text, mentions=mentions, **known)
        (record,) = normalization.predict(EchoCoder(), [report])
        return [(record.mentions[event.mention].text, event.pt) for event in record.events]

    dizzy = Mention(0, 5, "dizzy", INDICATION, 0.9, status="indication")
    assert coded("dizzy", dizzy, drug="Lexapro") == [("dizzy", "dizzy")]
    assert coded("dizzy", drug="UNKNOWN") == [("dizzy", "dizzy")]
    assert coded("SOB/CP", drug="Lexapro") == [("SOB", "shortness of breath"), ("CP", "chest pain")]
    assert coded("N/V from it") == [("N", "nausea"), ("V", "vomiting")]
    assert coded("dizzy", dizzy) == coded("SOB/CP") == coded("dizzy", drug=" ") == []
    assert coded("dizzy", drug="Lexapro", read=False, language="cy") == []
    assert coded("dizzy", drug="Lexapro", source="questions") == []
    assert coded("dizzy all week but then it went", drug="Lexapro") == []
    assert coded("dizzy", dizzy, drug="Lexapro", indication="dizzy") == []
    (record,) = normalization.predict(EchoCoder(), [replace(REPORT, text="dizzy", mentions=(), drug="Paxil")])
    assert (record.events[0].drugs, record.events[0].drug_evidence) == (("paroxetine",), "report")


def test_two_small_letters_are_no_serious_event_in_a_post() -> None:
    def pts(surface: str, coder: Any, **known: Any) -> list[str | None]:
        text = f"Vioxx, {surface} again"
        found = Mention(7, 7 + len(surface), surface, ADE, 0.9)
        report = replace(REPORT, text=text, mentions=(found,), **known)
        return [event.pt for event in normalization.predict(coder, [report])[0].events]

    for surface in ("mi", "pe", "na", "a pe", "an mi"):
        assert pts(surface, SeriousCoder()) == [None], surface
        assert pts(surface, SeriousCoder(), releases={"acronym": "0" * 12}) == ["MI"], surface
        assert pts(surface, EchoCoder()) == [surface]
    for surface in ("MI", "Pe", "dvt", "pe.", "m i", "an attack", "me dead"):
        assert pts(surface, SeriousCoder()) == ["MI"], surface


def test_an_event_has_the_assertion_of_its_sentence() -> None:
    (coded,) = normalization.predict(EchoCoder(), [REPORT])
    assert not any(e.negated or e.hypothetical or e.other_experiencer for e in coded.events)
    text = "My mum might get a rash. No rash for me."
    mentions = [Mention(at, at + 4, "rash", ADE, 0.9) for at in (19, 28)]
    (coded,) = normalization.predict(EchoCoder(), [replace(REPORT, text=text, mentions=tuple(mentions))])
    flags = [(e.negated, e.hypothetical, e.other_experiencer) for e in coded.events]
    assert flags == [(False, True, True), (True, False, False)]


def test_a_question_that_names_a_medicine_has_events_and_what_it_asks_about_is_hypothetical() -> None:
    text = "I got a rash. Can it cause a rash?"
    rashes = tuple(Mention(at, at + 4, "rash", ADE, 0.9, status="own") for at in (8, 29))
    asked = replace(REPORT, text=text, mentions=rashes, source="questions")
    named = replace(asked, mentions=(*rashes, Mention(18, 20, "it", DRUG, 0.9)))
    found = normalization.predict(
        EchoCoder(), [asked, named, replace(asked, drug="aspirin"), replace(asked, source="posts")]
    )
    assert [[e.hypothetical for e in coded.events] for coded in found] == [
        [], [False, True], [False, True], [False, False],
    ]  # fmt: skip
    assert [coded.mentions for coded in found[:2]] == [asked.mentions, named.mentions]


def test_she_is_somebody_else_in_a_post_and_the_patient_in_a_clinical_sentence() -> None:
    text = "She had insomnia."
    post = replace(REPORT, text=text, mentions=(Mention(8, 16, "insomnia", ADE, 0.9),), relations=())
    sentence = replace(post, releases={"acronym": "0" * 12, "relation": "0" * 12})
    coded = normalization.predict(EchoCoder(), [post, sentence])
    assert [c.events[0].other_experiencer for c in coded] == [True, False]


def test_suspects_are_found_by_relations_acronyms_and_what_the_source_states() -> None:
    expansion = Expansion(MTX.start, MTX.end, "MTX", "methotrexate", 0.9, "dictionary")
    mentions = ASPIRIN, replace(MTX, generic=None), RA, TEN, RASH
    related = replace(
        REPORT, mentions=mentions, relations=(Relation(1, 3, 1.0),), expansions=(expansion,), drug="Lexapro"
    )
    sentence = replace(related, drug=None, releases={"acronym": "a", "relation": "b"})
    review = replace(REPORT, mentions=(RASH,), drug="Lexapro")
    found = [
        [(e.drugs, e.drug_evidence) for e in coded.events]
        for coded in normalization.predict(EchoCoder(), [related, sentence, review])
    ]
    by_relation = ("methotrexate",), "relation"
    by_words = ("aspirin", "methotrexate"), "text"
    assert found == [[by_relation, by_words], [by_relation, ((), "none")], [(("escitalopram",), "report")]]


def mention_in(text: str, surface: str) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, ADE, 0.9)


def test_an_effect_that_is_the_stated_indication_is_a_mention_of_it_and_no_event() -> None:
    text = "Migraine, then nausea. No migraine now"
    effects = mention_in(text, "Migraine"), mention_in(text, "nausea"), mention_in(text, "migraine")
    judged = tuple(replace(m, status="own", status_score=0.8) for m in effects[:2])
    review = replace(REPORT, text=text, relations=(), mentions=(*judged, effects[2]), drug="Imitrex")
    review = replace(review, indication="migraines, migraine")
    (coded,) = normalization.predict(EchoCoder(), [review])
    assert [(m.label, m.status, m.status_score) for m in coded.mentions] == [
        ("INDICATION", "indication", None), (ADE, "own", 0.8), (ADE, None, None),
    ]  # fmt: skip
    assert [(e.mention, e.llt) for e in coded.events] == [(1, "nausea"), (2, "migraine")]
    (other,) = normalization.predict(EchoCoder(), [replace(review, indication=None)])
    assert [e.mention for e in other.events] == [0, 1, 2]


def test_what_is_told_of_an_indication_is_no_course_of_an_effect() -> None:
    text = "Migraine went away. Then nausea resolved"
    mentions = mention_in(text, "Migraine"), mention_in(text, "nausea")
    review = replace(
        REPORT, text=text, relations=(), mentions=mentions, drug="Imitrex", indication="migraine",
        case_fields=case_fields(text, mentions),
    )  # fmt: skip
    (coded,) = normalization.predict(EchoCoder(), [review])
    told = [[text[f.start : f.end] for f in report.case_fields] for report in (review, coded)]
    assert told == [["went away", "resolved"], ["resolved"]]


class WordTagger:
    """Labels every first word as an adverse event."""

    def __init__(self, languages: tuple[str, ...] | None = None) -> None:
        self.read: list[str] = []
        self.stated: list[Stated] = []
        if languages:
            self.languages = languages

    def predict(self, batch: Sequence[str], stated: Sequence[Stated]) -> list[list[Mention]]:
        self.read += batch
        self.stated += stated
        return [[Mention(0, len(t.split()[0]), t.split()[0], ADE, 0.9)] for t in batch]


ENGLISH = Report(id="en", text="Insomnia since I started these pills")
SPANISH = Report(id="es", text="Desde que tomo sertralina no puedo dormir")


def test_a_text_that_the_model_does_not_read_has_no_mention_whatever_its_source_states() -> None:
    model = WordTagger()
    other, read = ner.predict(model, [SPANISH, ENGLISH])
    assert model.read == [ENGLISH.text]
    assert (other.language, other.mentions) == ("es", ())
    assert (read.language, [m.text for m in read.mentions]) == (None, ["Insomnia"])
    assert (other.was_read, read.was_read) == (False, True)
    assert ner.predict(WordTagger(("en", "es")), [SPANISH])[0].was_read
    english, spanish = replace(ENGLISH, language="de"), replace(SPANISH, language="en")
    read, other = ner.predict(WordTagger(), [english, spanish])
    assert (read.language, read.was_read, len(read.mentions)) == ("de", True, 1)
    assert (other.language, other.was_read, other.mentions) == ("es", False, ())


def test_the_tagger_gets_what_the_source_of_each_text_that_it_reads_states() -> None:
    model = WordTagger()
    review = replace(ENGLISH, drug=("Zoloft", "Lexapro"), indication="panic attacks")
    ner.predict(model, [SPANISH, review, replace(ENGLISH, indication=" ")])
    assert model.stated == [Stated(("Zoloft", "Lexapro"), "panic attacks"), Stated()]


def test_a_class_in_a_post_is_a_drug_of_the_record() -> None:
    text = "Insomnia since I take statins"
    (record,) = ner.predict(WordTagger(), [replace(ENGLISH, text=text)])
    assert [(m.text, m.generic, m.kind) for m in record.mentions] == [
        ("Insomnia", None, None), ("statins", "statin", "class"),
    ]  # fmt: skip
    assert "atorvastatin" in record.mentions[1].members


def test_a_stage_is_prepared_so_that_its_first_inference_loads_nothing() -> None:
    prepare = stage_named("ner").prepare
    assert prepare is not None
    fresh = once(language._identifier.__wrapped__)  # type: ignore[attr-defined]
    again = mock.patch.object(
        LanguageIdentifier, "from_model_file", side_effect=AssertionError("loaded again")
    )
    with mock.patch.object(language, "_identifier", fresh):
        prepare()
        with again:
            (output,) = ner.predict(
                FakeTagger(), [Report(id="a", text="После таблеток совсем не могу уснуть.")]
            )
    assert output.language == "ru"


def test_a_report_in_an_unsupported_language_is_counted_and_has_no_event() -> None:
    counter = metrics.EVENTS.labels("unsupported_language")
    before = counter._value.get()
    coded = normalization.predict(EchoCoder(), ner.predict(WordTagger(), [SPANISH, ENGLISH]))
    assert [(c.language, len(c.events)) for c in coded] == [("es", 0), (None, 1)]
    count = stage_named("normalization").count
    assert count is not None
    count(coded)
    assert counter._value.get() == before + 1


def test_mentions_are_counted_by_how_their_wording_was_coded() -> None:
    class Coder(EchoCoder):
        wordings = KnownWordings()

    coder, counters = Coder(), [metrics.WORDINGS.labels(how) for how in ("kept", "searched")]
    coder.wordings.add({"rash": Known(Coding((), True), None)}, 3)
    before = [counter._value.get() for counter in counters]
    normalization.predict(coder, [REPORT])
    normalization.predict(coder, [REPORT])
    assert [counter._value.get() - n for counter, n in zip(counters, before, strict=True)] == [2, 1]
