"""Misspelled names of drugs, and what drugs are taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.drugs import BUNDLED as LEXICON
from models.drugs.informal_names import generic_of_misspelling
from models.drugs.uses import BUNDLED, DrugUses, bundled_uses
from models.tables import read_tsv
from models.terminology import load


@pytest.mark.parametrize(
    ("drug", "use", "is_known"),
    [
        ("clozapine", "Schizophrenia", True),
        ("heparin", "Pulmonary embolism", True),
        ("clozapine", "Agranulocytosis", False),
        ("warfarin", "Haemorrhage", False),
        ("haloperidol", "Tardive dyskinesia", False),
        ("haloperidol", "Tic", True),
        ("minoxidil", "Hypertrichosis", False),
        ("cinacalcet", "Hypocalcaemia", False),
        ("cinacalcet", "Hyperparathyroidism", True),
        ("lactulose", "Diarrhoea", False),
        ("pyridoxine", "Neuropathy peripheral", False),
        ("sodium phosphate", "Hyperphosphataemia", False),
        ("sevelamer", "Hypophosphataemia", False),
        ("tacrolimus", "Thrombotic thrombocytopenic purpura", False),
        ("cyclosporine", "Gout", False),
        ("aspirin", "Gout", False),
        ("dexamethasone", "Adrenal insufficiency", False),
        ("hydrocortisone", "Adrenal insufficiency", True),
        ("dexamethasone", "Hiccups", False),
        ("fluticasone", "Epistaxis", False),
        ("omalizumab", "Anaphylactic reaction", False),
        ("obeticholic acid", "Pruritus", False),
        ("cyclophosphamide", "Bladder cancer", False),
        ("vemurafenib", "Squamous cell carcinoma of skin", False),
        ("gabapentin", "Myoclonus", False),
        ("valproic acid", "Myoclonus", True),
        ("digoxin", "Arrhythmia", False),
        ("digoxin", "Atrial fibrillation", True),
        ("lanreotide", "Diarrhoea", False),
        ("medroxyprogesterone", "Osteoporosis", False),
        ("colesevelam", "Blood triglycerides increased", False),
        ("nitroglycerin", "Hypertension", True),
        ("phytonadione", "International normalised ratio increased", True),
        ("methotrexate", "Ectopic pregnancy", True),
        ("hydrocodone/acetaminophen", "Pyrexia", True),
        ("hydrocodone/acetaminophen", "Chronic obstructive pulmonary disease", False),
        ("no drug", "Pain", False),
    ],
)
def test_uses_are_what_a_drug_and_its_parts_treat(drug: str, use: str, is_known: bool) -> None:
    assert bundled_uses().treats(drug, use) is bundled_uses().treats(drug, use.upper()) is is_known


def test_the_bundled_table_names_preferred_terms_and_drugs_of_the_lexicon() -> None:
    preferred = {t.pt for t in load()}
    drugs = {row[1] for row in read_tsv(LEXICON, ("name", "generic"))}
    rows = [[cell.split("; ") for cell in row] for row in read_tsv(BUNDLED, ("uses", "drugs"))]
    for terms, own in rows:
        assert len(set(terms)) == len(terms)
        assert own == sorted(set(own))
        assert not set(terms) - preferred
        assert not set(own) - drugs
    covered = {drug for _, own in rows for drug in own}
    singles = {drug for drug in drugs if "/" not in drug}
    assert len(covered & singles) > 0.95 * len(singles)


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "uses.tsv"
    path.write_text("drug\tuse\naspirin\tPain\n")
    with pytest.raises(ValueError, match=r"uses\.tsv: the header must begin with uses, drugs"):
        DrugUses.load(path)


@pytest.mark.parametrize(
    ("name", "generic"),
    [
        ("cybalta", "duloxetine"),
        ("Cymbaltas", "duloxetine"),
        ("trazdone", "trazodone"),
        ("seratraline", "sertraline"),
        ("azithomycin", "azithromycin"),
        ("risperdoine", "risperidone"),
        ("prozach", "fluoxetine"),
        ("aderol", "dextroamphetamine/amphetamine"),
        # Two edits, too short, another first letter, no word, and one edit from two drugs.
        ("citropalapram", None),
        ("zolft", None),
        ("axolotl", None),
        ("ybalta", None),
        ("cefipime", None),
        ("co-codamol 30", None),
        ("", None),
        ("chlorpro\u00e9mazine", None),
    ],
)
def test_a_word_one_edit_from_the_names_of_one_drug_is_that_drug(name: str, generic: str | None) -> None:
    assert generic_of_misspelling(name) == generic
