"""Terminologies: the bundled one, tables, and files in MedDRA's format with invented codes and terms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from models import terminology
from models.terminology import Term, TerminologyError


@pytest.fixture(scope="module")
def bundled() -> list[Term]:
    return terminology.load()


def test_the_bundled_terminology_is_large_in_order_and_rated(bundled: list[Term]) -> None:
    assert len({t.pt for t in bundled}) >= 7000
    assert len(bundled) >= 50_000
    assert {t.pt for t in bundled} == {t.pt for t in bundled if t.llt == t.pt}
    assert [llt for llt, n in Counter(t.llt.lower() for t in bundled).items() if n > 1] == []
    assert [t for t in bundled for part in (t.llt, t.pt, t.soc) if part != part.strip()] == []
    classes = {t.pt: t.soc for t in bundled}
    assert [t for t in bundled if t.soc != classes[t.pt] or not t.soc] == []
    rated = {t.pt: (t.frequency, t.serious) for t in bundled}
    assert [t for t in bundled if (t.frequency, t.serious) != rated[t.pt]] == []
    assert {frequency for frequency, _ in rated.values()} == set(range(6))
    assert 20 < sum(frequency == 5 for frequency, _ in rated.values()) < 200


def test_bundled_terms_of_one_kind_are_alike_in_seriousness(bundled: list[Term]) -> None:
    serious = {t.pt for t in bundled if t.serious}
    fractures = {t.pt for t in bundled if t.pt.endswith(" fracture")} - {"Tooth fracture"}
    organs = "Lung", "Hepatic", "Ovarian", "Breast", "Renal", "Bladder", "Pancreatic", "Brain"
    alike = fractures | {f"{organ} neoplasm" for organ in organs}
    alike |= {"Respiratory acidosis", "Respiratory alkalosis", "Oligohydramnios", "Polyhydramnios"}
    alike |= {"Breast necrosis", "Skin necrosis", "Azoospermia", "Male infertility"}
    assert sorted(alike - serious) == []


def test_bundled_names_that_differ_in_order_number_or_a_word_agree(bundled: list[Term]) -> None:
    pts = {t.llt.lower(): t.pt for t in bundled}
    same = [
        ("lung mass", "mass in lung"), ("langerhans cell histiocytosis", "langerhans' cell histiocytosis"),
        ("acute pyelonephritis", "pyelonephritis acute"), ("low apgar score", "apgar score low"),
        ("interaction with alcohol", "alcohol interaction"), ("rdw raised", "raised rdw"),
        ("psychogenic seizures", "psychogenic seizure"), ("calcified pancreas", "pancreas calcified"),
        ("raised blood ketones", "blood ketones raised"), ("ears red", "red ear"),
        ("bruise easily", "bruises easily"), ("easy bruising", "bruising easily"),
        ("lump where injected", "large lump where injected"), ("clenching jaw", "clenching my jaw"),
        ("wrong drug given", "wrong medication given"), ("allergic rash", "allergic skin rash"),
        ("tablet too big to swallow", "tablets too big to swallow"), ("red rash", "rash red"),
        ("exposure in pregnancy", "exposure during pregnancy"), ("lung infection", "infection of lung"),
        ("swelling around eyes", "swollen around the eyes"), ("stomach bleeding", "bleeding from stomach"),
        ("took double dose by mistake", "double dose by mistake"), ("sugar crashed", "sugar crash"),
        ("immune-mediated pneumonitis", "immune-related pneumonitis"),
        ("immune-mediated thrombocytopenia", "immune thrombocytopenia"),
        ("clostridioides difficile colitis", "clostridium difficile colitis"),
        ("vomiting faeces", "faecal vomiting"), ("dry socket", "alveolar osteitis"),
    ]  # fmt: skip
    assert [pair for pair in same if pts[pair[0]] != pts[pair[1]]] == []


def test_bundled_names_have_the_preferred_term_of_what_they_name(bundled: list[Term]) -> None:
    """American spellings, and what patients and clinicians say."""
    pts = {t.llt.lower(): t.pt for t in bundled}
    named = {
        "esophageal varices hemorrhage": "Oesophageal varices haemorrhage",
        "fetal growth restriction": "Foetal growth restriction", "hypernatremia": "Hypernatraemia",
        "diastolic heart failure": "Cardiac failure", "hfref": "Cardiac failure", "hfpef": "Cardiac failure",
        "foot drop": "Peroneal nerve palsy", "wrist drop": "Radial nerve palsy",
        "hypoxic brain injury": "Hypoxic-ischaemic encephalopathy", "frozen shoulder": "Periarthritis",
        "skin tags": "Acrochordon", "pulmonary nodule": "Pulmonary mass", "snotty nose": "Rhinorrhoea",
        "swollen muscles": "Muscle oedema",
        "brbpr": "Rectal haemorrhage", "iv blew": "Infusion site extravasation",
        "pen jammed": "Device malfunction", "used expired pen": "Expired product administered",
        "c-section wound opened": "Wound dehiscence", "tacrolimus level low": "Drug level decreased",
        "flew off the handle": "Anger", "baby brain": "Memory impairment", "jock itch": "Tinea cruris",
        "bp through the floor": "Hypotension", "dark thoughts": "Negative thoughts",
    }  # fmt: skip
    assert {name: pts.get(name) for name in named} == named


def test_bundled_organ_classes_are_those_of_the_event_or_of_the_product(bundled: list[Term]) -> None:
    socs = {t.pt: t.soc for t in bundled}
    expected = {
        "Device breakage": "Product issues", "Product odour abnormal": "Product issues",
        "Device occlusion": "Product issues", "Device related infection": "Infections and infestations",
        "Medication error": "Injury, poisoning and procedural complications",
        "Superior vena cava syndrome": "Vascular disorders", "Brain herniation": "Nervous system disorders",
        "Asphyxia": "Respiratory, thoracic and mediastinal disorders",
        "Penile ulceration": "Reproductive system and breast disorders",
        "Periorbital swelling": "Eye disorders",
        "Pressure ulcer": "Skin and subcutaneous tissue disorders",
    }  # fmt: skip
    assert {pt: socs.get(pt) for pt in expected} == expected


def table(folder: Path, content: str) -> Path:
    path = folder / "terms.tsv"
    path.write_text(content, encoding="utf-8")
    return path


def test_a_preferred_term_without_a_row_of_its_own_gets_one(tmp_path: Path) -> None:
    path = table(
        tmp_path, "llt\tpt\tsoc\nthrowing up\tVomiting\tGut\nvomiting\tVomiting\tGut\nsick\tNausea\tGut\n"
    )
    assert terminology.load(path) == [
        Term("throwing up", "Vomiting", "Gut"),
        Term("vomiting", "Vomiting", "Gut"),
        Term("sick", "Nausea", "Gut"),
        Term("Nausea", "Nausea", "Gut"),
    ]


RASH = "Rash\tRash\tSkin"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"serious\tfrequency\n{RASH}\t0\t5", Term("Rash", "Rash", "Skin", frequency=5)),
        (f"serious\tfrequency\n{RASH}\t1\t2", Term("Rash", "Rash", "Skin", serious=True, frequency=2)),
        (f"frequency\n{RASH}\t1", Term("Rash", "Rash", "Skin", frequency=1)),
        (f"code\tSerious\tfrequency\n{RASH}\t1\t\t1", Term("Rash", "Rash", "Skin", frequency=1)),
        (f"serious\tcode\n{RASH}\t0\tA17", Term("Rash", "Rash", "Skin")),
    ],
)
def test_columns_of_extra_facts_are_found_by_name(tmp_path: Path, content: str, expected: Term) -> None:
    assert terminology.load(table(tmp_path, f"llt\tpt\tsoc\t{content}\n")) == [expected]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("llt\tpt\tsoc\tserious\tfrequency\na\tb\tc\t0\n", "frequency of 'a' is '', not 0 to 5"),
        ("llt\tpt\tsoc\tserious\tfrequency\na\tb\tc\t0\t9\n", "frequency of 'a' is '9', not 0 to 5"),
        ("llt\tpt\tsoc\tserious\na\tb\tc\tyes\n", "whether 'a' is serious is 'yes', not 1 or 0"),
        ("", "header"),
        ("pt\tllt\tsoc\na\tb\tc\n", "header must begin with llt, pt, soc"),
        ("llt\tpt\tsoc\n", "no term"),
        ("llt\tpt\tsoc\na\tb\tc\na\tb\n", "line 3"),
        ("llt\tpt\tsoc\na\t\tc\n", "line 2"),
    ],
)
def test_an_invalid_table_is_refused_in_one_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(TerminologyError, match=message) as refused:
        terminology.load(table(tmp_path, content))
    assert "\n" not in str(refused.value)


# The columns are those of MedDRA's distribution files; the codes and terms are not from MedDRA.
SOC = "900001$Upsets$Ups$$$$$$$$\n900002$Aches$Ache$$$$$$$$\n"
PT = "800001$Queasiness$$900001$$$$$$$$\n800002$Sore toe$$900002$$$$$$$$\n"
LLT = (
    "700001$Feeling queasy$800001$$$$$$$Y$$\n"
    "700002$Queasy-like (old)$800001$$$$$$$N$$\n"
    "800001$Queasiness$800001$$$$$$$Y$$\n"
    "700003$Toe hurts$800002$$$$$$$Y$$\n"
)


def meddra(folder: Path, soc: str = SOC, pt: str = PT, llt: str = LLT) -> Path:
    for name, content in (("soc.asc", soc), ("pt.asc", pt), ("llt.asc", llt)):
        (folder / name).write_text(content, encoding="utf-8", newline="")
    return folder


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_current_terms_of_meddra_are_read_with_the_primary_class(tmp_path: Path, line_end: str) -> None:
    soc, pt, llt = (part.replace("\n", line_end) for part in (SOC, PT, LLT))
    assert terminology.load(meddra(tmp_path, soc, pt, llt)) == [
        Term("Feeling queasy", "Queasiness", "Upsets"),
        Term("Queasiness", "Queasiness", "Upsets"),
        Term("Toe hurts", "Sore toe", "Aches"),
        Term("Sore toe", "Sore toe", "Aches"),
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"llt": LLT + "700004$Short row$800001\n"}, r"llt\.asc, line 5: needs 10 columns"),
        ({"pt": "800001$Queasiness\n"}, r"pt\.asc, line 1: needs 4 columns"),
        ({"soc": "900001\n"}, r"soc\.asc, line 1: needs 2 columns"),
        ({"pt": PT.splitlines()[0]}, "'Toe hurts' has a preferred term that is not in pt.asc"),
        ({"llt": ""}, "no term"),
        ({"llt": LLT.replace("$Y$", "$N$")}, "no term"),
    ],
)
def test_broken_meddra_files_are_one_clear_line(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(TerminologyError, match=message) as refused:
        terminology.load(meddra(tmp_path, **files))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["soc.asc", "pt.asc", "llt.asc"])
@pytest.mark.parametrize("content", [None, b"700001$Caf\xe9$800001$$$$$$$Y$$\n"])
def test_the_error_names_a_meddra_file_that_is_missing_or_in_another_encoding(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    (meddra(tmp_path) / name).unlink()
    if content:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TerminologyError, match=name):
        terminology.load(tmp_path)
    with pytest.raises(TerminologyError, match=r"nowhere\.tsv"):
        terminology.load(tmp_path / "nowhere.tsv")


def test_a_list_that_is_changed_changes_no_later_one() -> None:
    first = terminology.load()
    first.clear()
    assert len(terminology.load()) > 1000


def test_the_copy_of_a_release_is_not_kept_twice(tmp_path: Path) -> None:
    copy = tmp_path / "terminology.tsv"
    copy.write_bytes(terminology.BUNDLED.read_bytes())
    assert all(one is other for one, other in zip(terminology.load(copy), terminology.load(), strict=True))
    copy.write_bytes(b"llt\tpt\tsoc\nFalls\tFall\tInjury\n")
    assert [term.llt for term in terminology.load(copy)] == ["Falls", "Fall"]
