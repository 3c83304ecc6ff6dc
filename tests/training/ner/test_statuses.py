"""What the status head learns from: the teaching corpus' flags and what the public corpora imply."""

from __future__ import annotations

import pytest

from models.types import ADE, DRUG, HYPOTHETICAL, NEGATED, NO_EVENT, OTHER, OWN, RELIEVED, STATUSES, SYMPTOM
from training.common.corpora import GoldMention, GoldText
from training.ner.data import joined
from training.ner.statuses import NOT_OWN, corpus_targets, marked_targets
from training.teaching.markup import parse


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("[DRUG#1 zoloft] gave me [ADE<1 headaches = Headache]", (OWN,)),
        ("[DRUG#1 zoloft] and no [ADE<1?negated headaches = Headache]", (NEGATED,)),
        ("will [DRUG#1 zoloft] give me [ADE<1?hypothetical headaches = Headache]", (HYPOTHETICAL,)),
        ("[DRUG#1 zoloft] gave mum [ADE<1?other headaches = Headache]", (OTHER,)),
        ("had [ADE<1?past headaches = Headache] before [DRUG#1 zoloft]", (NO_EVENT,)),
        ("[DRUG#1 zoloft] for [IND<1 headaches = Headache]", ("indication",)),
        ("[DRUG#1 zoloft] cured my [IND<1?relieved headaches = Headache]", (RELIEVED,)),
        ("finally [IND<1?wanted drowsy by ten] on [DRUG#1 zopiclone]", (RELIEVED, "indication", NO_EVENT)),
        ("mum has [DRUG#1 zoloft] for [IND<1?other headaches = Headache]", ("indication", OTHER)),
        ("this pharmacy and [DRUG#1 zoloft] are a [NONE headache]", (NO_EVENT,)),
    ],
)
def test_a_mark_has_the_status_of_its_label_and_flag(line: str, wanted: tuple[str, ...]) -> None:
    [target] = marked_targets(parse(line))
    assert target.statuses == wanted
    assert set(wanted) <= set(STATUSES)


def test_an_effect_is_due_to_the_drugs_with_its_number() -> None:
    [target] = marked_targets(
        parse("[DRUG#1 zoloft] is fine, [DRUG#2 lexapro] makes me [ADE<2 sweat = Hyperhidrosis]")
    )
    assert target.drugs == (1,)
    [unknown] = marked_targets(parse("[DRUG#1 zoloft] or not, I [ADE sweat = Hyperhidrosis]"))
    assert unknown.drugs is None


def test_a_name_of_the_terminology_that_nobody_marked_is_no_own_event() -> None:
    [own, free] = marked_targets(
        parse("[DRUG#1 zoloft]: [ADE<1 sweating = Hyperhidrosis]. What is Diarrhoea?")
    )
    assert own.statuses == (OWN,) and free.statuses == NOT_OWN


def test_a_public_corpus_implies_statuses_and_drugs() -> None:
    text = "lithium caused tremor in depression"
    gold = GoldText(
        "a",
        text,
        (GoldMention(0, 7, DRUG), GoldMention(15, 21, ADE), GoldMention(25, 35, SYMPTOM)),
        ((0, 1),),
    )
    effect, symptom = corpus_targets(gold)
    assert (effect.statuses, effect.drugs) == ((OWN,), (0,))
    assert (symptom.statuses, symptom.drugs) == (("indication", RELIEVED), None)


def test_joined_texts_keep_their_words_and_mentions() -> None:
    texts = [GoldText(str(i), f"a {i} pain", (GoldMention(4, 8, ADE),)) for i in range(10)]
    assert joined(texts, 0.0, 1) == texts
    made = joined(texts, 1.0, 1)
    assert len(made) == 5
    assert " ".join(t.text for t in made) == " ".join(t.text for t in texts)
    assert [[t.text[m.start : m.end] for m in t.mentions] for t in made] == [["pain", "pain"]] * 5
