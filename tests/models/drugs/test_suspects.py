from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from models.drugs.suspects import Suspects
from models.types import ADE, DRUG, INDICATION, Expansion, Mention, Relation, TaggedText

TEXT = "Aspirin and MTX for RA caused TEN and rash"


def mention(surface: str, label: str, generic: str | None = None, text: str = TEXT) -> Mention:
    start = text.index(surface)
    return Mention(start, start + len(surface), surface, label, 0.9, generic)


ASPIRIN, MTX = mention("Aspirin", DRUG, "aspirin"), mention("MTX", DRUG, "methotrexate")
RA, TEN, RASH = mention("RA", INDICATION), mention("TEN", ADE), mention("rash", ADE)


def suspected(
    effect: int,
    mentions: Sequence[Mention] = (ASPIRIN, MTX, RA, TEN, RASH),
    relations: Sequence[Relation] = (),
    text: str = TEXT,
    **known: Any,
) -> tuple[tuple[str, ...], str]:
    return Suspects(text, TaggedText(tuple(mentions), tuple(relations)), **known).of(effect)


def test_a_related_drug_is_the_suspect_and_named_by_its_long_form() -> None:
    related = suspected(3, relations=[Relation(1, 3, 1.0)], stated=["aspirin"])
    assert related == (("methotrexate",), "relation")
    mentions, relations = [mention("MTX", DRUG), TEN], [Relation(0, 1, 1.0)]
    expansion = Expansion(MTX.start, MTX.end, "MTX", "methotrexate", 0.9, "dictionary")
    assert suspected(1, mentions, relations, expansions=[expansion]) == (("methotrexate",), "relation")
    unknown = [replace(mentions[0], text="XYZ"), TEN]
    assert suspected(1, unknown, relations, TEXT.replace("MTX", "XYZ")) == (("xyz",), "relation")


def test_of_several_drugs_in_one_mention_each_is_a_suspect() -> None:
    def of(drugs: str, generic: str | None = None) -> tuple[tuple[str, ...], str]:
        text = f"GIB on {drugs}"
        mentions = mention("GIB", ADE, text=text), mention(drugs, DRUG, generic, text)
        long = Expansion(7, 10, "ASA", "acetylsalicylic acid", 0.8, "dictionary")
        return suspected(0, mentions, [Relation(1, 0, 1.0)], text, expansions=[long])

    assert of("ASA/Plavix") == (("aspirin", "clopidogrel"), "relation")
    assert of("ASA-Plavix") == (("aspirin", "clopidogrel"), "relation")
    assert of("ASA/Plavix", "aspirin/clopidogrel") == (("aspirin/clopidogrel",), "relation")


def test_without_a_relation_the_drug_that_the_source_states_is_the_suspect() -> None:
    assert suspected(3, stated=["LEXAPRO"]) == (("escitalopram",), "report")
    assert suspected(0, [RASH], stated=["Mystery  Pill"]) == (("mystery pill",), "report")
    several = suspected(0, [RASH], stated=["Zoloft", "Effexor XR 75 mg", "sertraline"])
    assert several == (("sertraline", "venlafaxine"), "report")
    assert suspected(0, [RASH]) == ((), "none")


def test_of_two_drugs_the_suspect_is_the_one_that_the_post_blames() -> None:
    text = "Zoloft gave me hives, been put on Seroquel to treat it"
    drugs = mention("Zoloft", DRUG, "sertraline", text), mention("Seroquel", DRUG, "quetiapine", text)
    mentions = [*drugs, mention("hives", ADE, text=text)]
    assert suspected(2, mentions, text=text) == (("sertraline",), "text")
    assert suspected(2, mentions, text=text, stated=["Lexapro"]) == (("sertraline",), "text")
    assert suspected(2, mentions, text=text, clinical=True) == ((), "none")
    review = "Hives all over. I take Zoloft too. Hives"
    named = Mention(23, 29, "Zoloft", DRUG, 0.9, "sertraline"), Mention(35, 40, "Hives", ADE, 0.9)
    assert suspected(1, named, text=review, stated=["Lexapro"]) == (("escitalopram",), "report")


def test_the_only_drug_of_a_post_is_the_suspect_and_that_of_a_clinical_sentence_is_not() -> None:
    assert suspected(1, [MTX, TEN]) == (("methotrexate",), "only_drug_in_text")
    assert suspected(0, [TEN]) == ((), "none")
    assert suspected(1, [MTX, TEN], clinical=True) == ((), "none")


def test_a_drug_that_the_tagger_has_no_name_for_gets_that_of_the_bundled_lexicon_or_of_a_nickname() -> None:
    def names(drug: str, relations: Sequence[Relation] = (), **known: Any) -> tuple[str, ...]:
        text = f"{drug} gave me hives"
        mentions = mention(drug, DRUG, text=text), mention("hives", ADE, text=text)
        return suspected(1, mentions, relations, text, **known)[0]

    assert names("Sema") == ("semaglutide",)
    assert names("addy") == ("dextroamphetamine/amphetamine",)
    assert names("Drug X") == ("drug x",)
    assert names("perc", [Relation(0, 1, 1.0)], clinical=True) == ("perc",)


def test_what_names_no_drug_is_no_suspect_and_a_stated_drug_is_known_as_people_write_it() -> None:
    def of(stated: str) -> tuple[tuple[str, ...], str]:
        return suspected(0, [RASH], stated=[stated])

    for name in ("UNKNOWN", "N/A", "Placebo", "placebo (Zoloft)", "BLINDED THERAPY", "study drug", " - "):
        assert of(name) == ((), "none"), name
    text = "Zoloft gave me hives"
    mentions = mention("Zoloft", DRUG, "sertraline", text), mention("hives", ADE, text=text)
    assert suspected(1, mentions, text=text, stated=["unknown"]) == (("sertraline",), "only_drug_in_text")
    assert suspected(0, [RASH], stated=["unknown", "Paxil"]) == (("paroxetine",), "report")
    for name in ("Lexapro10mg", "20mgLexapro", "lexipro", "lexaprosucks", "LexaproSideEffects"):
        assert of(name) == (("escitalopram",), "report"), name
    assert of("amoxicillin/clav") == (("amoxicillin/clavulanic acid",), "report")
    assert of("VACCINE NOS") == (("vaccine",), "report")
    assert of("unspecified statin") == (("statin",), "report")
    assert of("LOT 4711x") == (("lot 4711x",), "report")
    assert suspected(0, [mention("hives", ADE, text=text)], text=text) == ((), "none")
    told = "the study drug and Zoloft. placebo gave me hives"
    named = mention("Zoloft", DRUG, "sertraline", told), mention("placebo", DRUG, text=told)
    assert suspected(0, [mention("hives", ADE, text=told), *named], text=told)[0] == ("sertraline",)
    related = [mention("placebo", DRUG, text=told), mention("hives", ADE, text=told)]
    assert suspected(1, related, [Relation(0, 1, 1.0)], told, clinical=True) == ((), "none")


def blamed(text: str, *drugs: str, effect: str = "cramps", **known: Any) -> tuple[tuple[str, ...], str]:
    """The suspects of an effect, with the drugs of a text in the tables' names."""
    generics = {"Lipitor": "atorvastatin", "Zoloft": "sertraline"}
    tagged = [mention(drug, DRUG, generics.get(drug), text) for drug in drugs]
    return suspected(0, [mention(effect, ADE, text=text), *tagged], text=text, **known)


def test_a_class_is_suspected_where_it_is_blamed_or_taken_and_never_before_its_products() -> None:
    assert blamed("on a statin now, cramps", "statin") == (("statin",), "only_drug_in_text")
    assert blamed("cramps, I would need a statin", "statin") == ((), "none")
    assert blamed("cramps. now on a statin", "statin") == ((), "none")
    assert blamed("on a statin now, cramps", "statin", stated=["Paxil"]) == (("paroxetine",), "report")
    assert blamed("my statin gave me cramps", "statin") == (("statin",), "only_drug_in_text")
    assert blamed("my statins gave me cramps, Zoloft did not", "statins", "Zoloft") == (("statin",), "text")
    assert blamed("Lipitor is a statin, cramps", "Lipitor", "statin") == (
        ("atorvastatin",),
        "only_drug_in_text",
    )
    text = "Lipitor. Zoloft too. the statin gave me cramps"
    assert blamed(text, "Lipitor", "Zoloft", "statin") == (("atorvastatin",), "text")
    assert blamed("cramps from the statin", "statin", stated=["Crestor"]) == (("rosuvastatin",), "report")
    assert blamed("cramps from the statin", "statin", stated=["Paxil"]) == (("statin",), "text")


def test_a_regimen_stands_for_its_members_and_two_names_of_one_medicine_are_one_suspect() -> None:
    members = ("leucovorin", "fluorouracil", "oxaliplatin")
    assert blamed("FOLFOX and cramps", "FOLFOX") == (members, "only_drug_in_text")
    assert suspected(0, [RASH], stated=["folfox"]) == (members, "report")
    text = "FOLFOX caused cramps"
    mentions = mention("FOLFOX", DRUG, text=text), mention("cramps", ADE, text=text)
    assert suspected(1, mentions, [Relation(0, 1, 1.0)], text, clinical=True) == (members, "relation")
    for name in ("Moderna", "elasomeran", "Spikevax", "mRNA-1273", "Moderna covid vaccine"):
        assert suspected(0, [RASH], stated=[name]) == (("elasomeran",), "report")
    assert suspected(0, [RASH], stated=["Moderna", "Spikevax"]) == (("elasomeran",), "report")
    assert suspected(0, [RASH], stated=["Statins"]) == (("statin",), "report")
