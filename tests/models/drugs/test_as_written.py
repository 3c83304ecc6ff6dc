"""Names of drugs as people write them: joined with doses and words, misspelled; and what is none."""

from __future__ import annotations

from time import process_time

import pytest

from models.drugs import BUNDLED, bundled_lexicon
from models.drugs.classes import bundled_classes
from models.drugs.joined import drugs_joined, generic_as_written
from models.drugs.placeholders import is_placeholder, is_product
from models.tables import read_tsv


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Lexapro10mg gave me nausea", "Lexapro=escitalopram"),
        ("20mgLexapro 20mgpaxil 10MGPAXIL", "Lexapro=escitalopram paxil=paroxetine PAXIL=paroxetine"),
        ("wellbutrin300xl and Zoloft50", "wellbutrin=bupropion Zoloft=sertraline"),
        ("Adderall20mgXR", "Adderall=dextroamphetamine/amphetamine"),
        ("Lamictal200mg/day", "Lamictal=lamotrigine"),
        ("10gabapentin300", "gabapentin=gabapentin"),
        ("Lexipro10mg", "Lexipro=escitalopram"),
        ("AmbienCR3 wellbutrinXL", "AmbienCR=zolpidem wellbutrinXL=bupropion"),
        ("metformin_500 #ozempic_problems", "metformin=metformin ozempic=semaglutide"),
        ("#OzempicSideEffects #thanksOzempic", "Ozempic=semaglutide Ozempic=semaglutide"),
        ("teamHumira #HumiraDay2", "Humira=adalimumab Humira=adalimumab"),
        ("#lexaprosucks #lexaproproblems", "lexapro=escitalopram lexapro=escitalopram"),
        ("#stoptakingpaxil #RECALLPRADAXA", "paxil=paroxetine PRADAXA=dabigatran"),
        ("#prednisonemoonface", "prednisone=prednisone"),
        # A whole name, a part of a name or of a word, another name, accounts, and other things with digits.
        ("5htp 3TC OxyContin #Lexapro ad26.cov2.s", ""),
        ("lexaproproblems azoloft #ciprolex #gingerbread #lexaproxyz", ""),
        ("@LexaproProblems @teamHumira me@Zoloft10mg", ""),
        ("iPhone5 COVID19 H1N1 PS5 mp3 B12 Q10 2nd 3pm #TBT2day McDonald YouTube", ""),
        ("concert10 ambient5 #ambientlight BabyHeroin MyInsulin", ""),
        ("", ""),
    ],
)
def test_a_drug_is_found_in_a_word_that_is_written_together(text: str, found: str) -> None:
    assert [f"{text[s.start : s.end]}={generic}" for s, generic in drugs_joined(text)] == found.split()


@pytest.mark.parametrize(
    ("name", "generic"),
    [
        ("wegovi", "semaglutide"),
        ("ozempick", "semaglutide"),
        ("munjaro", "tirzepatide"),
        ("Lexapro10mg daily", "escitalopram"),
        ("wegovi2.4mg", "semaglutide"),
        ("ozempicksucks", "semaglutide"),
        ("generic Zoloft 50", "sertraline"),
        ("TylenolPM", "acetaminophen/diphenhydramine"),
        ("lexaprozoloft", None),
        ("Zoloft or Paxil", None),
        ("planet", None),
        ("planet fitness", None),
        ("Sunovion", None),
        ("iphone5", None),
        ("homebrew", None),
        ("Aloprim 300 mg", "allopurinol"),
        ("taurine 1000", "taurine"),
        ("", None),
    ],
)
def test_what_is_taken_for_a_drug_has_the_name_of_the_only_drug_in_it(name: str, generic: str | None) -> None:
    assert generic_as_written(name) == generic


def test_a_word_of_many_parts_and_a_text_of_hashtags_take_linear_time() -> None:
    begun = process_time()
    for text in ("a1" * 50_000, "#" + "ab" * 50_000, "aB_" * 30_000, "#headaches" * 10_000):
        assert list(drugs_joined(text)) == []
    assert len(list(drugs_joined("#lexaproproblems " * 2_000))) == 2_000
    assert process_time() - begun < 5


@pytest.mark.parametrize(
    "name",
    [
        "UNKNOWN", "N/A", "n.a.", "NA", "None", "NOT SPECIFIED", "not reported", "PLACEBO", "Placebo B",
        "Keytruda or placebo", "BLINDED THERAPY", "blinded study drug", "study drug", "study  medication",
        "Unspecified ingredient", "other medications", "ALL OTHER THERAPEUTIC PRODUCTS", "the drug", "meds",
        "drug unknown", "drug not specified", "drug name unknown", "see narrative", "TBD", "-", "???", "xxx",
        "investigational product", "no concomitant medication", "over the counter medicine",
    ],
)  # fmt: skip
def test_what_stands_for_a_drug_and_names_none_is_a_placeholder(name: str) -> None:
    assert is_placeholder(name)
    assert not is_product(name)


def test_no_name_of_a_drug_a_nickname_or_a_class_is_a_placeholder() -> None:
    names = [row[0] for row in read_tsv(BUNDLED, ("name", "generic"))]
    assert len(names) > 4_000
    assert [name for name in names if is_placeholder(name)] == []
    for name in (
        "unblinded pembrolizumab",
        "study of drugs",
        "nan's tea",
        "mystery pill",
        "no-dose",
        "unknown " * 50,
    ):
        assert not is_placeholder(name)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("sertraline", True),
        ("mystery pill", True),
        ("5-hydroxytryptophan", True),
        ("ad26.cov2.s vaccine", True),
        ("h1n1 influenza vaccine", True),
        ("iphone5", False),
        ("lot 4711", False),
        ("contraceptive", False),
        ("antibiotic", False),
        ("vaccine", False),
    ],
)
def test_classes_and_unknown_names_with_digits_are_no_products(name: str, counts: bool) -> None:
    assert is_product(name) == counts


def test_all_that_the_tables_name_with_digits_are_products() -> None:
    generics = {row[1] for row in read_tsv(BUNDLED, ("name", "generic"))}
    members = {m for group in bundled_classes()._groups.values() for m in group.members}
    known = {name for name in generics | members if bundled_lexicon().is_generic(name)}
    assert len(known) > 2_000
    assert [name for name in sorted(known) if any(map(str.isdigit, name)) and not is_product(name)] == []
