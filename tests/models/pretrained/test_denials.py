"""What the bundled tagger and the rules make of denials, amounts, answers and hashtags in posts."""

from __future__ import annotations

import pytest

from models.assertion.flags import asserted
from models.loading import load
from models.ner.model import NerModel
from models.releases.store import bundled, open_release
from models.types import CODED_LABELS, Assertion


@pytest.fixture(scope="module")
def tagger() -> NerModel:
    model = load(open_release(bundled("ner")), dtype="float32").model
    assert isinstance(model, NerModel)
    return model


@pytest.mark.parametrize(
    ("post", "events"),
    [
        ("Week 3 of metformin. Nausea:none Diarrhea:yes", ["Diarrhea"]),
        ("Week 3 of metformin. Nausea:yes Diarrhea:none", ["Nausea"]),
        ("Humira week 2. Nausea:no Headache:no Rash:no", []),
        ("Humira week 4: pain 0/10, nausea 0, rash 0", []),
        ("Gabapentin tally, dizziness 6/10, blurry vision 0/10", ["dizziness"]),
        ("Side effects of Yaz: mood swings - nope, spotting - yep", ["spotting"]),
        ("Effexor missed dose, nausea n, crying n", []),
        ("Ozempic: constipation ✔ vomiting ✘ hair loss ✘", ["constipation"]),
        ("Switched to Wellbutrin and instead of weight gain I got headaches.", ["headaches"]),
        ("They warned me about nausea, hair loss and fatigue with Arava. Got zero side effects.", []),
        ("Possible side effects of Eliquis: bleeding, nausea, anemia. Haven't had a single one.", []),
        ("Don't think Lexapro doesn't cause weight gain, because it did for me.", ["weight gain"]),
        ("It's not like prednisone didn't give me insomnia.", ["insomnia"]),
        ("Prednisone gave me insomnia and it has not stopped.", ["insomnia"]),
        ("Got nausea and hair loss from Arava. No other side effects.", ["nausea", "hair loss"]),
        ("Humira day 2 #hives #fever #fatigue", ["hives", "fever", "fatigue"]),
        ("Gabapentin week one #dizzy #drowsy", ["dizzy", "drowsy"]),
        ("Took my Vyvanse too late #insomnia", ["insomnia"]),
        ("Humira works for my #psoriasis #arthritis", []),
        ("Ozempic #diabetes #weightloss", []),
        ("Learn about Xarelto and #bleeding #stroke risks", []),
        ("Zyrtec season is here #allergies #sneezing", []),
    ],
)
def test_only_what_happened_is_an_event(tagger: NerModel, post: str, events: list[str]) -> None:
    (mentions,) = tagger.predict([post])
    own = [m.text for m in mentions if m.label in CODED_LABELS and asserted(post, m) == Assertion()]
    assert own == events
