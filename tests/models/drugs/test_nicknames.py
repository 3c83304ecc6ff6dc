"""What posts call a drug for short."""

from __future__ import annotations

import pytest

from models.drugs import bundled_lexicon, informal_names
from models.drugs.informal_names import BUNDLED, generic_of_misspelling, generic_of_nickname
from models.tables import read_tsv


@pytest.mark.parametrize(
    ("name", "text", "generic"),
    [
        ("Addy", "addy makes my heart race", "dextroamphetamine/amphetamine"),
        ("spiro", "spiro makes me dizzy", "spironolactone"),
        ("plan  B", "plan  B made me bleed", "levonorgestrel"),
        ("Depo shot", "the Depo shot gave me headaches", "medroxyprogesterone"),
        ("Pfizer", "my second Pfizer shot", "tozinameran"),
        ("pfizer vaccine", "the pfizer vaccine", "tozinameran"),
        ("moderna", "moderna booster: chills", "elasomeran"),
        ("J&J", "got the J&J jab", "ad26.cov2.s vaccine"),
        # A maker makes other drugs too.
        ("Pfizer", "Pfizer's Chantix gave me nightmares", None),
        ("moderna", "Moderna gave me a fever", "elasomeran"),
        ("Lexy", "Lexy makes me yawn", "escitalopram"),
        ("Nitro", "Nitro gave me a headache", "nitroglycerin"),
        ("zoloft", "zoloft", None),
        ("the thing", "the thing", None),
        ("", "nothing", None),
    ],
)
def test_a_nickname_is_the_drug_that_posts_mean(name: str, text: str, generic: str | None) -> None:
    assert generic_of_nickname(name, text) == generic


def test_nicknames_are_of_drugs_in_the_lexicon_and_are_no_names_there() -> None:
    lexicon = bundled_lexicon()
    rows = list(read_tsv(BUNDLED, ("name", "generic", "kind")))
    assert [name for name, *_ in rows] == sorted({name for name, *_ in rows})
    for name, generic, kind in rows:
        assert kind == "alike" or lexicon.generic(generic) == generic, name
        assert lexicon.canonical(name) is None, name
        assert kind in {"short", "maker", "alike"}


def test_a_name_that_is_one_letter_from_another_one_is_no_slip_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = {
        name: generic for name, generic, kind in read_tsv(BUNDLED, ("name", "generic")) if kind == "alike"
    }
    generic_of_misspelling.cache_clear()
    assert {name: generic_of_misspelling(name) for name in rows} == rows
    monkeypatch.setattr(informal_names, "generic_of_nickname", lambda *_: None)
    generic_of_misspelling.cache_clear()
    slips = {name: generic_of_misspelling(name) for name in rows}
    generic_of_misspelling.cache_clear()
    assert not [name for name, slip in slips.items() if slip in (None, rows[name])], "not needed"
    assert slips["taurine"] == "tacrine"
