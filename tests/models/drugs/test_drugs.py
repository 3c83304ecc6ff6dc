"""The drug lexicon and the reader of tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.drugs import BUNDLED, DrugLexicon
from models.tables import read_tsv
from models.types import Span


@pytest.fixture(scope="module")
def bundled() -> DrugLexicon:
    return DrugLexicon.load()


@pytest.mark.parametrize(
    ("stated", "generics"),
    [
        ("Zoloft", ("sertraline",)),
        ("EFFEXOR XR 75 mg", ("venlafaxine",)),
        ("effexorXR", ("venlafaxine",)),
        ("Lexapro (escitalopram)", ("escitalopram",)),
        ("codeine / paracetamol", ("codeine", "acetaminophen")),
        ("Mystery  Pill", ("mystery pill",)),
    ],
)
def test_what_a_source_states_as_the_drug_is_named_by_its_generics(
    bundled: DrugLexicon, stated: str, generics: tuple[str, ...]
) -> None:
    assert bundled.generics(stated) == generics


def test_each_of_many_bundled_names_is_there_once_and_found_whole_in_a_sentence(bundled: DrugLexicon) -> None:
    assert len(bundled) >= 500
    names = [row[0].lower() for row in read_tsv(BUNDLED, ("name", "generic"))]
    assert len(names) == len(set(names))
    for name, generic, *_ in read_tsv(BUNDLED, ("name", "generic")):
        text = f"she took {name.upper()} daily"
        assert bundled.find(text) == [(Span(9, 9 + len(name)), generic)], name
    generics = {row[1] for row in read_tsv(BUNDLED, ("name", "generic"))}
    assert {g: bundled.generic(g) for g in generics if bundled.generic(g) not in (g, None)} == {}


@pytest.mark.parametrize(
    ("name", "generic"),
    [
        ("Zoloft", "sertraline"),
        ("EFFEXOR", "venlafaxine"),
        ("clozapine", "clozapine"),
        ("aspirin", "aspirin"),
        ("Paxil CR", "paroxetine"),
        ("Toprol-XL", "metoprolol"),
        ("wellbutrinXL", "bupropion"),
        ("zoloft" + " -" * 50_000 + "xr", "sertraline"),
        ("-XR", None),
        ("zoloft" + " -" * 50_000, None),
        ("Diltiazem HCl", "diltiazem"),
        ("quetiapine fumarate", "quetiapine"),
        ("methylprednisolone sodium succinate", "methylprednisolone"),
        ("calcium carbonate", "calcium carbonate"),
        ("gabapentin enacarbil", "gabapentin enacarbil"),
        ("sodium chloride", None),
        ("zoloft" + " hcl" * 50_000 + "x", None),
        ("sulfamethoxazole-trimethoprim", "sulfamethoxazole/trimethoprim"),
        ("sulfamethoxazole/trimethoprim", "sulfamethoxazole/trimethoprim"),
        ("losartan/HCTZ", "losartan/hydrochlorothiazide"),
        ("levodopa+carbidopa", "levodopa/carbidopa"),
        ("losartan/sertraline", None),
        ("tmp/smx", "sulfamethoxazole/trimethoprim"),
        ("pip-tazo", "piperacillin/tazobactam"),
        ("climara-pro", "estradiol/levonorgestrel"),
    ],
)
def test_brands_release_forms_salts_and_combinations_are_known_by_their_generic_name(
    bundled: DrugLexicon, name: str, generic: str | None
) -> None:
    assert bundled.generic(name) == generic


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "header must begin with name, generic"),
        ("generic\tname\n", "header must begin with name, generic"),
        ("name\tgeneric\na\tb\nonly\n", r"t\.tsv, line 3: 2 filled columns"),
        ("name\tgeneric\na\t\n", r"t\.tsv, line 2: 2 filled columns"),
        ("name\tgeneric\n\na\tb\n", r"t\.tsv, line 2: 2 filled columns"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "t.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        DrugLexicon.load(path)


def test_a_table_may_have_more_columns_and_the_line_ends_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b"name\tgeneric\tkind\r\nTylenol\tparacetamol\tbrand\r\nadvil\tibuprofen\r\n")
    lexicon = DrugLexicon.load(path)
    assert lexicon.generic("tylenol") == "paracetamol"
    assert lexicon.generic("Advil") == "ibuprofen"


def test_files_of_the_same_content_share_a_lexicon_and_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    one, other = tmp_path / "one.tsv", tmp_path / "other.tsv"
    for path in (one, other):
        path.write_text("name\tgeneric\nadvil\tibuprofen\n", encoding="utf-8")
    lexicon = DrugLexicon.load(one)
    assert DrugLexicon.load(other) is lexicon
    other.write_text("name\tgeneric\nadvil\tnaproxen\n", encoding="utf-8")
    assert (DrugLexicon.load(other).generic("Advil"), lexicon.generic("Advil")) == ("naproxen", "ibuprofen")


@pytest.mark.parametrize(
    ("text", "generics"),
    [
        ("Journavx and Cobenfy", ["suzetrigine", "xanomeline/trospium"]),
        ("reta after Zepbound", ["retatrutide", "tirzepatide"]),
        ("20 units glargine with lispro at meals", ["insulin glargine", "insulin lispro"]),
        ("given coamoxiclav and cocodamol", ["amoxicillin/clavulanic acid", "codeine/acetaminophen"]),
        ("a z-pack and Crocin", ["azithromycin", "acetaminophen"]),
        ("Tdap and a shingles shot", ["diphtheria/tetanus/acellular pertussis vaccine", "zoster vaccine"]),
        ("the depo shot made me bleed", ["medroxyprogesterone"]),
        ("plan B is what I simply sleep on; one a day, well versed, clear eyes, free estriol", []),
        ("Ms Saxena, vitamin D level, factor VIII inhibitor, parathyroid hormone", []),
    ],
)
def test_newer_drugs_short_names_and_words_that_are_none(
    bundled: DrugLexicon, text: str, generics: list[str]
) -> None:
    assert [generic for _, generic in bundled.find(text)] == generics


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pip/tazo and amp/sulb", "pip/tazo=piperacillin/tazobactam amp/sulb=ampicillin/sulbactam"),
        ("on amox-clav, Amoxicillin/Clav", "amox-clav Amoxicillin/Clav"),
        ("TMP/SMX, tmp+smx", "TMP/SMX tmp+smx"),
        ("sofos/velp; ezet/simva; carbi/levo", "sofos/velp ezet/simva carbi/levo"),
        ("losartan/HCTZ: both are drugs", ""),
        ("Depo-Provera, tri-luma; climara-patch", "Depo-Provera tri-luma"),
        ("met/sit, sac/val, for/mom, flu/form, est/pro, lid/pri", ""),
        ("and/or his/her day/night side-effect on/off 5mg/day N/V/D SOB/CP mg/kg", ""),
        ("pip/tazo/vanc x/pip/tazo #pip/tazo pip/tazo@home http://pip/tazo/", ""),
        ("pip / tazo, pip/, /tazo, pip//tazo", ""),
        ("", ""),
    ],
)
def test_a_drug_in_two_joined_words_is_found(bundled: DrugLexicon, text: str, found: str) -> None:
    made = {text[span.start : span.end]: generic for span, generic in bundled.joined(text)}
    expected = dict(one.partition("=")[::2] for one in found.split())
    assert list(made) == list(expected)
    assert all(generic in (expected[name], bundled.generic(name)) for name, generic in made.items())
