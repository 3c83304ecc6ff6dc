"""How an indirect question becomes a direct one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from models.summarization.extraction.clause_of_sentence import asking_clause
from models.summarization.extraction.question_form import as_question
from tests.models.summarization.messages import MESSAGES


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("I was wondering if there is a name for it?", "Is there a name for it?"),
        ("I want to know if CDH can be passed on.", "Can CDH be passed on?"),
        ("Please let me know whether anyone in Ulm is an expert", "Is anyone in Ulm an expert?"),
        ("I'd like to know if my capsules have gelatin from pig.", "Do my capsules have gelatin from pig?"),
        ("I want to know if it contains wheat", "Does it contain wheat?"),
        ("can you tell me how long it takes", "How long does it take?"),
        ("Please sir help me , tell me how can I abolish it", "How can I abolish it?"),
        ("What my doctor does is fine.", "What my doctor does is fine."),
        ("I was wondering if Zoloft could make me ill", "Could Zoloft make me ill?"),
        ("I just want to ask if I can take it", "Can I take it?"),
        ("can you tell me how bad it is", "How bad is it?"),
        # The verb of a clause that is no question's stays where it is.
        ("I wonder if I have gout", "Do I have gout?"),
        ("I wonder if people have gout", "I wonder if people have gout"),
        ("I wonder if it isn't gout", "I wonder if it isn't gout"),
        ("tell me what causes gout", "What causes gout?"),
        ("tell me what is the best dose", "What is the best dose?"),
        ("tell me what foods are good for him", "What foods are good for him?"),
        ("How bad it is!", "How bad it is?"),
        # Behind a wish, in any person and at any place.
        ("Kindly inform me if this passes to the children.", "Does this pass to the children?"),
        ("I am 75 and would like to know if there is another pill.", "Is there another pill?"),
        ("We would like to know how likely it is that she has it.", "How likely is it that she has it?"),
        ("Grateful to hear whether the cream stains.", "Does the cream stain?"),
        ("I was wondering if you know anything about this.", "Do you know anything about this?"),
        ("I want to know if she tries too hard", "Does she try too hard?"),
        ("someone tell me whether this will fade", "Will this fade?"),
        ("My question is whether a pill from the shop would help", "Would a pill from the shop help?"),
        ("What I want to know is whether it fades in time.", "Does it fade in time?"),
        ("Could you tell me what the rule is?", "What is the rule?"),
        ("I need to know what kind of food I can eat", "What kind of food can I eat?"),
        ("All I would like to learn is how long it takes.", "How long does it take?"),
        ("What I'm really wondering is do they outgrow it.", "Do they outgrow it?"),
        ("What we forgot to ask is at what age it is done.", "At what age is it done?"),
        ("Wondering how long gentamicin takes to work", "How long does gentamicin take to work?"),
        ("Gout MESSAGE: would like to know if he ought to be tested", "Ought he to be tested?"),
        # Marks are not doubled, whatever stands around them.
        ("Can it help?!?!", "Can it help?!?!"),
        ('Can it help?"', 'Can it help?"'),
        ("Can it help?\U0001f914", "Can it help?\U0001f914"),
        ("Can it help\u2026", "Can it help?"),
        # Contractions and the perfect.
        ("I'd like to know if there's any truth in this", "Is there any truth in this?"),
        ("I want to know if they'll do it again", "Will they do it again?"),
        ("I'd only like to understand why it's always at night.", "Why is it always at night?"),
        ("I'd love to know if it's been tried", "Has it been tried?"),
        ("I'd love to know if anyone else has had this", "Has anyone else had this?"),
        ("Please tell me if I am at risk", "Am I at risk?"),
        # What somebody else wants to know, or the past, is no question of the writer.
        ("My wife doesn't know how many I buy.", "My wife doesn't know how many I buy."),
        ("I wonder if they told him", "I wonder if they told him"),
        ("They asked if I take anything.", "They asked if I take anything."),
        ("Can you tell me the side effects of tea?", "What are the side effects of tea?"),
        ("please tell me the best treatment for gout", "What is the best treatment for gout?"),
        ("We want to know the chances that our baby has it.", "What are the chances that our baby has it?"),
        ("Please tell me the results of trials with tea", "What are the results of trials with tea?"),
        ("Need to know the longest a coil can stay in.", "What is the longest a coil can stay in?"),
        ("I'd like to know the reason why my hands shake", "What is the reason why my hands shake?"),
        # What no question can be made of stays whole, and so does what says something else.
        ("I want to know the truth about tea.", "I want to know the truth about tea."),
        (
            "I would like to know more about the use of tea.",
            "I would like to know more about the use of tea.",
        ),
        ("Tell me the side effects are normal.", "Tell me the side effects are normal."),
        # A meaning, of any subject.
        ("please tell me what my results mean", "What do my results mean?"),
        ("I know what it means.", "I know what it means."),
    ],
)
def test_an_indirect_question_becomes_a_direct_one(sentence: str, answer: str) -> None:
    assert as_question(sentence, asking_clause(sentence)) == answer


@given(MESSAGES)
def test_the_words_stay_the_same(sentence: str) -> None:
    part = asking_clause(sentence)

    def words(text: str) -> list[str]:
        """Without "do", the endings of verbs, which a question with "do" changes, and contracted verbs."""
        found = re.findall(r"\w+", text.lower())
        left_out = ("do", "does", "s", "re", "ll", "d", "m", "ve", "is", "are", "will", "would", "am")
        return sorted("have" if w == "has" else w.rstrip("es") for w in found if w not in left_out)

    assert words(as_question(sentence, part)) == words(sentence[part.start : part.end])
