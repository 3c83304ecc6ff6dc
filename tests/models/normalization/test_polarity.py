"""The veto of codes that say the opposite of their mention."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.encoder.model import Encoder
from models.normalization.model import NormalizationModel
from models.normalization.polarity import is_relief, opposes
from models.terminology import Term
from models.types import Query

OPPOSITE = [
    ("platelet 210\u219238", "Platelet count increased"),
    ("hemoglobin 13.2 g/dL -> 6.8", "Haemoglobin increased"),
    ("glucose 900 --> 1,200", "Blood glucose decreased"),
    ("resp rate 6", "Respiratory rate increased"),
    ("respiratory rate was 4", "Tachypnoea"),
    ("lithium level 2.1", "Drug level decreased"),
    ("pH 7.1", "Blood pH increased"),
    ("b12 is 140", "Vitamin B12 increased"),
    ("ferritin 6", "Serum ferritin increased"),
    ("vitamin d level dropped to 11", "Vitamin D increased"),
    ("magnesium 4.2", "Hypomagnesaemia"),
    ("hematocrit 22", "Haematocrit increased"),
    ("cortisol was 1.2", "Blood cortisol increased"),
    ("\u2193 weight", "Weight increased"),
    ("lost weight", "Weight increased"),
    ("rapid weight loss", "Weight increased"),
    ("losing so much weight", "Weight increased"),
    ("I gained 20 pounds", "Weight decreased"),
    ("can't lose weight", "Weight decreased"),
    ("unable to gain weight", "Weight increased"),
    ("no appetite", "Increased appetite"),
    ("not hungry at all", "Increased appetite"),
    ("can't stop eating", "Decreased appetite"),
    ("always starving", "Decreased appetite"),
    ("can\u2019t sleep", "Somnolence"),
    ("trouble falling asleep", "Hypersomnia"),
    ("can't stay awake", "Insomnia"),
    ("sleeping way too much", "Insomnia"),
    ("so sleepy all day", "Middle insomnia"),
    ("awake all night", "Somnolence"),
    ("not tired", "Fatigue"),
    ("exhausted", "Energy increased"),
    ("so much energy", "Fatigue"),
    ("no energy", "Energy increased"),
    ("no sex drive", "Libido increased"),
    ("higher libido", "Libido decreased"),
    ("libido gone", "Hypersexuality"),
    ("blood pressure dropped", "Hypertension"),
    ("high bp", "Hypotension"),
    ("low blood pressure", "Blood pressure increased"),
    ("low blood sugar", "Hyperglycaemia"),
    ("hyperglycemia", "Blood glucose decreased"),
    ("hypoglycaemic", "Hyperglycaemia"),
    ("heart racing, fast heartbeat", "Bradycardia"),
    ("slow pulse", "Tachycardia"),
    ("low sodium", "Hypernatraemia"),
    ("hyponatremia", "Blood sodium increased"),
    ("potassium was high", "Hypokalaemia"),
    ("hypothyroid", "Hyperthyroidism"),
    ("hair loss", "Hypertrichosis"),
    ("hair growth on my face", "Alopecia"),
    ("constipated", "Diarrhoea"),
    ("can't poop", "Diarrhoea"),
    ("white cells low", "Leukocytosis"),
    ("low cortisol", "Blood cortisol increased"),
    ("decreased liver enzymes, hepatic enzymes low", "Hepatic enzyme increased"),
    ("less mobility", "Mobility increased"),
    ("sleep went away", "Hypersomnia"),
    ("less sleepy", "Insomnia"),
    ("less sleepy", "Somnolence"),
    ("less tired", "Energy increased"),
    ("diarrhea went away", "Constipation"),
    ("sleep got better", "Hypersomnia"),
    ("blood pressure numbers went up", "Hypotension"),
    ("lost control of my blood sugar", "Hypoglycaemia"),
    ("blood sugar of 45", "Hyperglycaemia"),
    ("sugars in the 40s", "Blood glucose increased"),
    ("blood sugar hit 550", "Hypoglycaemia"),
    ("platelets of 20,000", "Platelet count increased"),
    ("platelets 20k", "Thrombocytosis"),
    ("platelet count of 900", "Thrombocytopenia"),
    ("absolute neutrophil count 300", "Neutrophil count increased"),
    ("ANC 0.3", "Neutrophil count increased"),
    ("neutrophils 900", "Neutrophilia"),
    ("neutrophil count of 14,000", "Neutropenia"),
    ("neutrophils 18.5", "Neutrophil count decreased"),
    ("sodium level of 155", "Hyponatraemia"),
    ("resting heart rate in the 40s", "Heart rate increased"),
    ("BP 200/110", "Hypotension"),
    ("bp of 80 over 50", "Hypertension"),
    ("temp of 94", "Pyrexia"),
    ("temperature of 39.5", "Hypothermia"),
    ("hemoglobin of 6.5", "Haemoglobin increased"),
    ("weight went from 150 lbs to 190", "Weight decreased"),
    ("went from 150 to 190 pounds", "Weight decreased"),
    ("from 85kg to 60kg", "Weight increased"),
    ("blood pressure went from 150/90 to 90/60", "Blood pressure increased"),
    ("cholesterol went from 280 to 160", "Blood cholesterol increased"),
    ("cholesterol went from 280 to 160", "Hypercholesterolaemia"),
    ("bowel movements went from 1 to 6 a day", "Constipation"),
    ("appetite tanked", "Increased appetite"),
    ("energy crash", "Energy increased"),
    ("weight skyrocketed", "Weight decreased"),
]

NOT_OPPOSITE = [
    ("creatinine 1.0 \u2192 2.8", "Blood creatinine increased"),
    ("platelet 210 -> 210", "Platelet count increased"),
    ("no appetite", "Decreased appetite"),
    ("can't sleep", "Insomnia"),
    ("lost weight", "Weight decreased"),
    ("can't stop eating", "Increased appetite"),
    ("can't lose weight", "Weight increased"),
    ("can't gain weight", "Weight decreased"),
    ("can't gain weight", "Weight gain poor"),
    ("tired but can't sleep", "Insomnia"),
    ("tired", "Insomnia"),
    ("can't control my eating", "Hyperphagia"),
    ("can't get enough sleep", "Insomnia"),
    ("can't get enough food", "Increased appetite"),
    ("never hungry", "Decreased appetite"),
    ("awake all night", "Insomnia"),
    ("can't stay awake", "Somnolence"),
    ("hard to wake up", "Somnolence"),
    ("keep waking up", "Middle insomnia"),
    ("sleepy during the day, no sleep at night", "Insomnia"),
    ("sleepy during the day, no sleep at night", "Somnolence"),
    ("no appetite and gained weight", "Weight increased"),
    ("sleep too much and lost my appetite", "Decreased appetite"),
    ("lower back pain", "Back pain"),
    ("pain that won't go away", "Pain"),
    ("headache went away after two days", "Headache"),
    ("didn't have much of a libido", "Libido decreased"),
    ("libido gone out the window", "Loss of libido"),
    ("bp out of control", "Hypertension"),
    ("can't hold my pee", "Pollakiuria"),
    ("pee all the time", "Pollakiuria"),
    ("legs gone numb", "Hypoaesthesia"),
    ("heart rate came down a lot", "Heart rate decreased"),
    ("high blood sugar", "Hyperglycaemia"),
    ("low sodium", "Hyponatraemia"),
    ("hypothyroid", "Hypothyroidism"),
    ("high blood pressure", "Blood glucose decreased"),
    ("hair falling out", "Alopecia"),
    ("slowly gaining back weight", "Weight increased"),
    ("gained all the weight I lost", "Weight increased"),
    ("weight", "Weight increased"),
    ("purple bicycle", "Weight increased"),
    ("poor blood pressure control", "Blood pressure inadequately controlled"),
    ("lost control of my blood sugar", "Hyperglycaemia"),
    ("lost weight", "Nausea"),
    ("blood sugar of 22", "Hyperglycaemia"),
    ("blood sugar 45 minutes after eating", "Hyperglycaemia"),
    ("blood sugar rose 40 points", "Blood glucose increased"),
    ("heart rate up 30 points", "Heart rate increased"),
    ("potassium 3 times a day", "Hyperkalaemia"),
    ("bp averaged 140/80", "Blood pressure increased"),
    ("resting heart rate of 450", "Bradycardia"),
    ("platelets of 650,000", "Thrombocytosis"),
    ("absolute neutrophil count 300", "Neutropenia"),
    ("neutrophils 80%", "Neutrophil count decreased"),
    ("neutrophils 3.2", "Neutrophil count increased"),
    ("neutrophils 3200", "Neutrophil count increased"),
    ("neutrophils 12,000", "Neutrophilia"),
    ("slept from 10 to 6", "Hypersomnia"),
    ("sleeping went from 10 pm to 6 am", "Hypersomnia"),
    ("weight went from 150 to 150", "Weight decreased"),
    ("pul\u017fe of 38", "Tachycardia"),
    ("cholesterol went from 160 to 280", "Blood cholesterol increased"),
]


@pytest.mark.parametrize(("mention", "pt"), OPPOSITE)
def test_a_code_that_says_the_opposite_is_refused(mention: str, pt: str) -> None:
    assert opposes(mention, pt)


@pytest.mark.parametrize(("mention", "pt"), NOT_OPPOSITE)
def test_a_code_that_does_not_clearly_say_the_opposite_is_kept(mention: str, pt: str) -> None:
    assert not opposes(mention, pt)


@pytest.mark.parametrize(
    ("mention", "relief"),
    [
        ("less tired", True),
        ("fewer headaches", True),
        ("reduced anxiety", True),
        ("sleeping better", True),
        ("killed my anxiety", True),
        ("took away my headaches", True),
        ("less energy", False),
        ("less hungry", False),
        ("less sleep", False),
        ("less tired but nauseous", False),
        ("pain not getting better", False),
        ("headache went away", False),
        ("no relief", False),
        ("nausea", False),
        ("", False),
        ("white cell numbers decreased", False),
        ("my ALT numbers are reduced", False),
        ("reduced pain sensation", False),
        ("less pain tolerance", False),
        ("decreased cough reflex", False),
        ("killed my appetite", False),
        ("took away my sleep", False),
        ("killed my sex drive", False),
        ("wiped out my energy", False),
    ],
)
def test_less_of_a_symptom_is_relief_and_less_of_what_is_wanted_is_none(mention: str, relief: bool) -> None:
    assert is_relief(mention) is relief


@given(st.text(max_size=60), st.text(max_size=30))
def test_no_text_is_an_error(mention: str, pt: str) -> None:
    assert opposes(mention, pt) in (True, False)
    assert is_relief(mention) in (True, False)


SLEEP = [Term("Can sleep", "Somnolence", "N"), Term("Insomnia", "Insomnia", "P"), Term("Rash", "Rash", "S")]


def coded(encoder: Encoder, terms: list[Term], mention: str) -> tuple[list[str], bool]:
    model = NormalizationModel(encoder, terms, encoder.embed([t.llt for t in terms]), k=3, nil_below=0.3)
    (coding,) = model.predict([Query(mention, 0, len(mention), mention)])
    return [c.pt for c in coding.candidates], coding.nil


def test_opposites_and_relief_are_passed_over_or_nil(mini: Encoder) -> None:
    assert coded(mini, SLEEP, "can't sleep") == (["Insomnia", "Somnolence", "Rash"], False)
    assert coded(mini, SLEEP, "can sleep")[0][0] == "Somnolence"
    assert coded(mini, SLEEP[:1], "can't sleep") == (["Somnolence"], True)
    terms = [*SLEEP, Term("Headache", "Headache", "N")]
    (first, *_), nil = coded(mini, terms, "fewer headaches")
    assert first == "Headache"
    assert nil
    assert coded(mini, SLEEP, "bad rash") == (["Rash", "Insomnia", "Somnolence"], False)


def test_a_reading_that_would_be_nil_is_coded_by_its_words(mini: Encoder) -> None:
    terms = [Term("Blood sugar low", "Hypoglycaemia", "M"), Term("Blood sugar high", "Hyperglycaemia", "M")]
    model = NormalizationModel(mini, terms, mini.embed([t.llt for t in terms]), k=2, nil_below=0.97)
    mentions = ["glucose of 39", "glucose of 600", "glucose of 100"]
    codings = model.predict([Query(m, 0, len(m), m) for m in mentions])
    assert [(c.nil, c.candidates[0].pt) for c in codings[:2]] == [
        (False, "Hypoglycaemia"),
        (False, "Hyperglycaemia"),
    ]
    assert codings[2].nil
