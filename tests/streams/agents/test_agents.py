from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest import mock

from py3langid.langid import LanguageIdentifier

from models import language
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
)
from streams import metrics
from streams.agents import acronym, ner, normalization
from streams.agents.pipeline import stage_named
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

    (record,) = acronym.predict(Expander(), [Report(id="r", text=TEXT)])
    assert (record.expansions, record.undecided) == ((sure,), (open_,))
    tagged = replace(REPORT, expansions=record.expansions, undecided=record.undecided)
    assert normalization.query(tagged, TEN).surface == "TEN"


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


def test_only_adverse_events_are_coded_and_all_of_a_batch_in_one_call() -> None:
    coder = EchoCoder()
    first, second = normalization.predict(coder, [REPORT, REPORT])
    assert len(coder.calls) == 1
    assert [e.mention for e in first.events] == [3, 4]
    assert first == second
    assert [e.context_weight for e in first.events] == [0.3, 0.4]


def test_a_nil_event_has_no_term_and_keeps_its_candidates() -> None:
    (coded,) = normalization.predict(EchoCoder(), [REPORT])
    nil = coded.events[1]
    assert (nil.llt, nil.pt, nil.soc, nil.nil) == (None, None, None, True)
    assert nil.candidates[0].pt == "rash"


def test_an_event_has_the_assertion_of_its_sentence() -> None:
    (coded,) = normalization.predict(EchoCoder(), [REPORT])
    assert not any(e.negated or e.hypothetical or e.other_experiencer for e in coded.events)
    text = "My mum might get a rash. No rash for me."
    mentions = [Mention(at, at + 4, "rash", ADE, 0.9) for at in (19, 28)]
    (coded,) = normalization.predict(EchoCoder(), [replace(REPORT, text=text, mentions=tuple(mentions))])
    flags = [(e.negated, e.hypothetical, e.other_experiencer) for e in coded.events]
    assert flags == [(False, True, True), (True, False, False)]


def test_she_is_somebody_else_in_a_post_and_the_patient_in_a_clinical_sentence() -> None:
    text = "She had insomnia."
    post = replace(REPORT, text=text, mentions=(Mention(8, 16, "insomnia", ADE, 0.9),), relations=())
    sentence = replace(post, releases={"acronym": "0" * 12, "relation": "0" * 12})
    coded = normalization.predict(EchoCoder(), [post, sentence])
    assert [c.events[0].other_experiencer for c in coded] == [True, False]


def test_a_report_without_mentions_gives_a_record_without_events() -> None:
    (coded,) = normalization.predict(EchoCoder(), [replace(REPORT, mentions=())])
    assert coded.events == ()


def test_an_acronym_inside_a_mention_is_replaced_by_its_long_form() -> None:
    expansion = Expansion(TEN.start, TEN.end, "TEN", "toxic epidermal necrolysis", 1.0, "text")
    query = normalization.query(replace(REPORT, expansions=(expansion,)), TEN)
    assert query.surface == "toxic epidermal necrolysis"
    wide = Mention(TEN.start, len(TEXT), "TEN and rash", ADE, 0.9)
    query = normalization.query(replace(REPORT, expansions=(expansion,)), wide)
    assert query.surface == "toxic epidermal necrolysis and rash"


def test_an_acronym_elsewhere_does_not_change_a_mention() -> None:
    expansion = Expansion(RA.start, RA.end, "RA", "rheumatoid arthritis", 1.0, "text")
    assert normalization.query(replace(REPORT, expansions=(expansion,)), TEN).surface == "TEN"


def test_a_mention_that_ends_before_its_value_is_coded_with_it() -> None:
    def surface(text: str, own: str, label: str = ADE) -> str:
        start = text.index(own)
        report = TaggedReport(id="r", text=text)
        return normalization.query(report, Mention(start, start + len(own), own, label, 0.9)).surface

    text = "My Blood sugar was in the 40s again"
    assert surface(text, "Blood sugar was") == "Blood sugar was in the 40s"
    assert surface(text, "sugar") == "sugar was in the 40s"
    assert surface("weight went from 150 to 190 lbs", "weight went") == "weight went from 150 to 190"
    assert surface("blood sugar 45 minutes after eating", "blood sugar") == "blood sugar"
    assert surface("rash, blood sugar of 45", "rash") == "rash"
    assert surface("took potassium 3.1 once", "potassium", DRUG) == "potassium"


def test_a_related_drug_is_the_suspect() -> None:
    report = replace(REPORT, relations=(Relation(1, 3, 1.0),), drug="aspirin")
    assert normalization.Suspects(report).of(3) == (("methotrexate",), "relation")


def test_an_abbreviated_suspect_is_named_by_its_long_form() -> None:
    short = replace(MTX, generic=None)
    expansion = Expansion(MTX.start, MTX.end, "MTX", "methotrexate", 0.9, "dictionary")
    report = replace(REPORT, mentions=(short, TEN), relations=(Relation(0, 1, 1.0),), expansions=(expansion,))
    assert normalization.Suspects(report).of(1) == (("methotrexate",), "relation")
    assert normalization.Suspects(replace(report, expansions=())).of(1) == (("mtx",), "relation")


def test_of_several_drugs_in_one_mention_each_is_a_suspect() -> None:
    text = "GIB on ASA/Plavix"
    drugs = Mention(7, len(text), "ASA/Plavix", DRUG, 0.8)
    long = Expansion(7, 10, "ASA", "acetylsalicylic acid", 0.8, "dictionary")
    own = (Mention(0, 3, "GIB", ADE, 0.9), drugs)
    report = TaggedReport(
        id="r", text=text, mentions=own, relations=(Relation(1, 0, 1.0),), expansions=(long,)
    )
    assert normalization.Suspects(report).of(0) == (("aspirin", "clopidogrel"), "relation")
    hyphen = replace(report, text="GIB on ASA-Plavix", mentions=(own[0], replace(drugs, text="ASA-Plavix")))
    assert normalization.Suspects(hyphen).of(0) == (("aspirin", "clopidogrel"), "relation")
    pair = replace(report, mentions=(own[0], replace(drugs, generic="aspirin/clopidogrel")))
    assert normalization.Suspects(pair).of(0) == (("aspirin/clopidogrel",), "relation")


def test_without_a_relation_the_drug_that_the_source_states_is_the_suspect() -> None:
    assert normalization.Suspects(replace(REPORT, drug="LEXAPRO")).of(3) == (("escitalopram",), "report")
    no_drug = replace(REPORT, mentions=(RASH,))
    assert normalization.Suspects(replace(no_drug, drug="Mystery  Pill")).of(0) == (
        ("mystery pill",),
        "report",
    )
    several = ("Zoloft", "Effexor XR 75 mg", "sertraline")
    assert normalization.Suspects(replace(no_drug, drug=several)).of(0)[0] == ("sertraline", "venlafaxine")
    assert normalization.Suspects(replace(no_drug, drug=" ")).of(0) == ((), "none")


def test_of_two_drugs_the_suspect_is_the_one_that_the_post_blames() -> None:
    text = "Zoloft gave me hives, been put on Seroquel to treat it"
    names = (("Zoloft", "sertraline"), ("Seroquel", "quetiapine"))
    drugs = [Mention(text.index(n), text.index(n) + len(n), n, DRUG, 0.9, g) for n, g in names]
    post = TaggedReport(id="r", text=text, mentions=(*drugs, Mention(15, 20, "hives", ADE, 0.9)))
    assert normalization.Suspects(post).of(2) == (("sertraline",), "text")
    assert normalization.Suspects(replace(post, drug="Lexapro")).of(2) == (("sertraline",), "text")
    sentence = replace(post, releases={"acronym": "a", "relation": "b"})
    assert normalization.Suspects(sentence).of(2) == ((), "none")


def test_a_drug_that_a_review_names_without_blaming_it_is_not_suspected() -> None:
    text = "Hives all over. I take Zoloft too. Hives"
    mentions = Mention(23, 29, "Zoloft", DRUG, 0.9, "sertraline"), Mention(35, 40, "Hives", ADE, 0.9)
    review = TaggedReport(id="r", text=text, mentions=mentions, drug="Lexapro")
    assert normalization.Suspects(review).of(1) == (("escitalopram",), "report")


def test_the_only_drug_of_a_post_is_the_suspect() -> None:
    assert normalization.Suspects(replace(REPORT, mentions=(MTX, TEN))).of(1) == (
        ("methotrexate",),
        "only_drug_in_text",
    )
    assert normalization.Suspects(replace(REPORT, mentions=(TEN,))).of(0) == ((), "none")


def test_a_sentence_without_a_relation_has_no_suspect() -> None:
    report = replace(REPORT, mentions=(MTX, TEN), releases={"acronym": "a", "relation": "b"})
    assert normalization.Suspects(report).of(1) == ((), "none")


class WordTagger:
    """Labels every first word as an adverse event."""

    def __init__(self, languages: tuple[str, ...] | None = None) -> None:
        self.read: list[str] = []
        if languages:
            self.languages = languages

    def predict(self, batch: Sequence[str]) -> list[list[Mention]]:
        self.read += batch
        return [[Mention(0, len(t.split()[0]), t.split()[0], ADE, 0.9)] for t in batch]


ENGLISH = Report(id="en", text="Insomnia since I started these pills")
SPANISH = Report(id="es", text="Desde que tomo sertralina no puedo dormir")


def test_a_post_in_a_language_that_the_model_does_not_read_is_named_and_has_no_mention() -> None:
    model = WordTagger()
    other, read = ner.predict(model, [SPANISH, ENGLISH])
    assert model.read == [ENGLISH.text]
    assert (other.language, other.mentions) == ("es", ())
    assert (read.language, [m.text for m in read.mentions]) == (None, ["Insomnia"])
    assert (other.was_read, read.was_read) == (False, True)
    assert ner.predict(WordTagger(("en", "es")), [SPANISH])[0].was_read


def test_the_language_that_a_source_states_is_kept_but_the_text_decides_whether_it_is_read() -> None:
    english, spanish = replace(ENGLISH, language="de"), replace(SPANISH, language="en")
    read, other = ner.predict(WordTagger(), [english, spanish])
    assert (read.language, read.was_read, len(read.mentions)) == ("de", True, 1)
    assert (other.language, other.was_read, other.mentions) == ("es", False, ())


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
    normalization.count(coded)
    assert counter._value.get() == before + 1


def test_a_mention_is_coded_without_its_drug_and_a_part_of_the_body_with_its_effect() -> None:
    text = "lost my period on testosterone, tingling in arms, legs"
    parts = [("lost my period on testosterone", ADE), ("testosterone", DRUG)]
    parts += [("tingling in arms", ADE), ("legs", ADE)]
    found = tuple(Mention(text.index(s), text.index(s) + len(s), s, label, 0.9) for s, label in parts)
    report = TaggedReport(id="r", text=text, mentions=found)
    surfaces = [normalization.query(report, m).surface for m in found]
    assert surfaces == ["lost my period", "testosterone", "tingling in arms", "tingling in legs"]


def test_a_drug_that_the_tagger_has_no_name_for_gets_that_of_the_bundled_lexicon_or_of_a_nickname() -> None:
    def names(drug: str, releases: dict[str, str]) -> tuple[str, ...]:
        text = f"{drug} gave me hives"
        found = (Mention(0, len(drug), drug, DRUG, 0.9), Mention(len(text) - 5, len(text), "hives", ADE, 0.9))
        report = TaggedReport(id="r", text=text, mentions=found, releases=releases)
        return normalization.Suspects(report).of(1)[0]

    assert names("Sema", {}) == ("semaglutide",)
    assert names("addy", {}) == ("dextroamphetamine/amphetamine",)
    assert names("Drug X", {}) == ("drug x",)
    related = TaggedReport(
        id="r",
        text="perc and hives",
        mentions=(Mention(0, 4, "perc", DRUG, 0.9), Mention(9, 14, "hives", ADE, 0.9)),
        relations=(Relation(0, 1, 1.0),),
        releases={"relation": "1"},
    )
    assert normalization.Suspects(related).of(1) == (("perc",), "relation")
