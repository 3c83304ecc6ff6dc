"""The assertion of effects in clinical sentences and notes."""

from __future__ import annotations

import pytest

from models.assertion.triggers import assertion
from models.types import Assertion
from tests.models.assertion.marked import ASSERTED, HYPOTHETICAL, NEGATED, OTHER, assertion_of


@pytest.mark.parametrize(
    ("marked", "is_other"),
    [
        ("She developed a [maculopapular rash] two days after the first dose of cefalexin.", False),
        ("We report a patient with [agranulocytosis] induced by clozapine.", False),
        ("The boy 's [seizures] began on the third day of isoniazid.", False),
        (
            "Somebody who takes linezolid for months may have others around, but [neuropathy] was his own.",
            False,
        ),
        ("A neonate whose mother had received lithium developed [hypothyroidism].", False),
        ("[Liver failure] after living donor transplantation in a woman on tacrolimus.", False),
        ("Rabbit antithymocyte globulin caused [serum sickness].", False),
        ("[Pulmonary embolism] was seen in a CAT scan.", False),
        ("A 30-year-old mother developed [rash] after amoxicillin.", False),
        ("Mother reports [night terrors] since montelukast was commenced.", False),
        ("Brother of a patient of ours. She had [rash] on sulfa.", False),
        ("Mother had asthma; patient developed [angioedema] on ramipril.", False),
        ("His father has asthma; the patient developed [angioedema] on ramipril.", False),
        ("The patient's mother developed [angioedema] on the same drug.", True),
        ("His father also died of [hepatic failure] after halothane.", True),
        ("The same [cough] was seen in his brother.", True),
        ("The donor developed [hypotension] after filgrastim.", True),
        ("Filgrastim may cause splenic rupture: [bone pain] in the donor.", True),
        ("Carprofen caused [liver necrosis] in two dogs.", True),
        ("In rats the compound produced [cataracts] at high doses.", True),
        ("[Methaemoglobinaemia] in a cat after paracetamol.", True),
    ],
)
def test_in_a_clinical_sentence_relatives_donors_and_animals_are_others(marked: str, is_other: bool) -> None:
    assert assertion_of(marked, clinical=True).other_experiencer is is_other


def test_negation_and_possibility_are_the_same_in_clinical_sentences_and_a_plus_ends_them() -> None:
    assert assertion_of("She had no [rash].", clinical=True) == NEGATED
    assert assertion_of("[No hepatotoxicity] occurred with isoniazid.", clinical=True) == NEGATED
    assert assertion_of("[Absence of rash] was noted.", clinical=True) == NEGATED
    assert assertion_of("Zoloft: [no appetite] at all.") == ASSERTED
    assert assertion_of("Lamotrigine may cause [rash].", clinical=True) == HYPOTHETICAL
    assert assertion_of("Gold may cause rash, and our patient had [nephrosis].", clinical=True) == ASSERTED
    assert assertion_of("Neg for chest pain, +[palpitations] on albuterol.", clinical=True) == ASSERTED
    assert assertion_of("Denies pain; + [nausea] on Ozempic.", clinical=True) == ASSERTED
    assert assertion_of("Denies pain, [nausea] on Ozempic.", clinical=True) == NEGATED


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("A woman with no history of mania developed a [manic episode] on fluoxetine.", ASSERTED),
        (
            "Four courses without any complication had passed before he experienced [hypersensitivity].",
            ASSERTED,
        ),
        ("No other possible cause of the [gynaecomastia] was found.", ASSERTED),
        ("He had [neutropenia] 0.5 x 10(9)/L.", ASSERTED),
        ("Prilocaine has not previously been described to cause [tinnitus].", ASSERTED),
        ("Olanzapine may be useful in patients with clozapine-induced [neutropenia].", ASSERTED),
        ("Other potential causes of the [hepatitis] were excluded.", ASSERTED),
        ("Rehabilitation potential following [myelopathy] was good.", ASSERTED),
        ("Statins can cause myalgia; she presented with [jaundice].", ASSERTED),
        ("Statins may cause myalgia, and the patient then developed [jaundice].", ASSERTED),
        ("She had no history of [seizures].", NEGATED),
        ("Cough can be a side effect; she never had [cough].", NEGATED),
        ("She had no prior [seizures].", NEGATED),
        ("It was not until the second course with [rash] that it was stopped.", ASSERTED),
        ("She has not yet developed [rash].", NEGATED),
        ("Denies            [nausea]", NEGATED),
        ("[Nausea]:          none", NEGATED),
        ("denies\ta\tb\tc\td\te\tf\tg\th\t[nausea]", ASSERTED),
        ("She does not endorse [suicidal ideation] on isotretinoin.", NEGATED),
        ("Stop the infusion if the patient developed [urticaria].", HYPOTHETICAL),
        ("[Cr 2.4] (baseline 1.0) after IV contrast", ASSERTED),
        ("[Lactate] 4.0, on metformin", ASSERTED),
        ("[Rash] 0.", NEGATED),
        ("ROS: negative for fever, chills, [rash]", NEGATED),
        ("Neg for rash or [jaundice] on nitrofurantoin", NEGATED),
        ("Negative for rash, positive for [cough] on enalapril", ASSERTED),
        ("ROS: (-) rash (+) [pruritus] on azathioprine", ASSERTED),
        ("Ciprofloxacin, denying [tendon pain]", NEGATED),
        ("[Pneumothorax] is not seen.", NEGATED),
        ("[Rash] was not noted until day 5.", ASSERTED),
        ("Tramadol + sertraline. [Clonus] absent.", NEGATED),
        ("r/o [HIT]; heparin held", HYPOTHETICAL),
        ("r/o HIT; heparin held for [bleeding]", ASSERTED),
        ("Family history: father died of MI; brother with [SJS] due to carbamazepine.", OTHER),
        ("FHx: mother had [malignant hyperthermia] with succinylcholine", OTHER),
        ("FHx: mother had MH. Pt developed [fever]", ASSERTED),
        ("Mother had [angioedema] with lisinopril.", OTHER),
        ("NKDA; sister w/ [rash] on sulfa", OTHER),
        ("Monitor for [hyperkalemia] while on trimethoprim.", HYPOTHETICAL),
        ("Annual screening for [retinopathy] on hydroxychloroquine", HYPOTHETICAL),
        ("Was monitored for bleeding and developed [rash] on heparin.", ASSERTED),
        ("Screened for TB, [rash] on isoniazid", ASSERTED),
        ("Monitor showed [bradycardia] on metoprolol", ASSERTED),
        ("Maternal aunt with [DVT] on OCPs", OTHER),
        ("Suicidal thoughts began with montelukast; [nightmares] denied.", NEGATED),
        ("While dyspnoea was denied, [orthopnoea] was admitted to.", ASSERTED),
        ("Neuropathy had developed by month 3; [hepatitis] had not.", NEGATED),
        ("Hiccups present, [insomnia] absent after dexamethasone 12 mg.", NEGATED),
        ("Tests for [hepatotoxicity] on isoniazid came back negative.", NEGATED),
        ("Screening for [agranulocytosis] under clozapine came back positive.", ASSERTED),
        ("Among 40 infants, none had [apnoea] and seven had redness.", NEGATED),
        ("Not one of the 22 volunteers had [valvulopathy].", NEGATED),
        ("MRI excluded [osteonecrosis] in this man.", NEGATED),
        ("[Serotonin syndrome] was excluded by toxicology.", NEGATED),
        ("Infection was excluded and [pneumonitis] diagnosed.", ASSERTED),
        ("Patients excluded for [rash] numbered four.", ASSERTED),
        ("[N/V] -, mucositis -, diarrhea +++", NEGATED),
        ("N/V -, mucositis -, [diarrhea] +++", ASSERTED),
        ("Should [angioedema] occur, enalapril must be withdrawn.", HYPOTHETICAL),
        ("The dose should be cut, as [angioedema] occurred.", ASSERTED),
        ("Pyridoxine was added lest [neuropathy] develop.", HYPOTHETICAL),
        ("Mercaptopurine held, [sepsis] feared, room booked.", HYPOTHETICAL),
        ("Mother developed [angioedema] on lisinopril; patient tolerates it well.", OTHER),
        ("Daughter reports that he has [gastritis] on tramadol.", ASSERTED),
    ],
)
def test_denials_conditions_and_family_are_read_in_sentences(note: str, expected: Assertion) -> None:
    assert assertion_of(note, clinical=True) == expected


def test_a_negation_reaches_the_next_line_of_a_note_that_was_cut_for_its_length() -> None:
    note = "She has taken amiodarone for two years and denies any chest pain,\ndizziness or [rash]."
    assert assertion_of(note, clinical=True) == NEGATED
    assert assertion_of(note) == ASSERTED


@pytest.mark.parametrize(
    ("marked", "is_told"),
    [
        ("Ketoconazole with warfarin could mean a [GI bleed].", True),
        ("Educated pt on s/sx of [serotonin syndrome] while on Zoloft and tramadol.", True),
        ("Counseled re: risks of metformin, [lactic acidosis].", True),
        ("Reviewed side effects of Chantix: [nausea].", True),
        ("Discussed side effects she has had on Zoloft, incl [nausea].", False),
        ("Counseled about diet; developed [nausea] on Ozempic.", False),
        ("Reviewed labs: [hyponatremia] on sertraline.", False),
        ("[Lactic acidosis] is a well-known adverse effect of metformin.", True),
        ("[Agranulocytosis] is a known complication of clozapine; our patient developed it.", False),
        ("He had a [rash], which is a known side effect of phenytoin.", False),
        ("Isoniazid can even precipitate [pellagra] in undernourished adults.", True),
        ("Isoniazid may have precipitated the [pellagra].", False),
        ("Patients on lamotrigine can develop [aseptic meningitis].", True),
        ("[Cataracts] may slowly develop in eyes that were given triamcinolone.", True),
        ("[Hepatitis] may have developed under methyldopa.", False),
        ("[Myopathy] represents an uncommon but serious complication of colchicine.", True),
        ("[Myopathy] is a rare complication of colchicine; our patient developed it in a week.", False),
        ("He was brought in with [ileus], a rare complication of clozapine.", False),
        ("[Scurvy] should be considered in children on a ketogenic diet.", True),
        ("Prescribers should be aware of [priapism] on trazodone.", True),
    ],
)
def test_what_a_patient_was_told_of_or_is_said_in_general_is_possible(marked: str, is_told: bool) -> None:
    assert assertion_of(marked, clinical=True) == (HYPOTHETICAL if is_told else ASSERTED)


def test_what_is_reported_behind_a_denial_is_not_denied() -> None:
    for text in ("Denies rash, reports itching.", "Denies rash and endorses itching, c/o pain."):
        for effect in ("rash", "itching", "pain"):
            start = text.find(effect)
            found = assertion(text, start, start + len(effect), clinical=True)
            assert start < 0 or found.negated is (effect == "rash")
