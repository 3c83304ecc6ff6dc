"""The assertion of a mention: by the status that a model gave it, else by the rules.

The head takes what another person has for the writer's in some sentences that say so plainly ("I know someone
who got lupus from it"), also with a high probability. There the rules decide, unless a source states the
medicine: such a text is about a patient, who may be the writer's mother or "he". The head takes for feared or
asked about what a question or a warning stands beside ("took it and got a rash. Is it safe?"): there words
decide that say that it happened. Where an answer stands beside an effect ("nausea: none"), the answer
decides. The head was taught on posts, which seldom ask: in a question the rules say what else is only asked
about. In clinical sentences the rules alone say what is denied or suspected; the head says what is an effect.
"""

from __future__ import annotations

from models.assertion.answers import all_denied, answer, may_be_denied
from models.assertion.triggers import assertion
from models.rules.notation import patterns
from models.types import HYPOTHETICAL, NEGATED, OTHER, OWN, Assertion, Mention

#: Below this probability of the writer's own event, the rules say whether it is another person's.
SURE = 0.9
#: Characters before an effect in which the words are that say who has it.
_REACH = 60
_SAYS = patterns("overruled_experiencer")
#: Characters behind an effect in which the words are that say that it happened.
_BEHIND = 100
_HAPPENED = patterns("overruled_hypothetical")


def asserted(
    text: str, mention: Mention, *, clinical: bool = False, asked: bool = False, of_patient: bool = False
) -> Assertion:
    """What `text` states about an effect; `clinical` as in `assertion`. `asked`: the text is a question, in
    which an effect is hypothetical where the rules find it so, too. `of_patient`: its source states a
    medicine, with which somebody else than the writer may be the patient.
    """
    if clinical or mention.status is None:
        return assertion(text, mention.start, mention.end, clinical=clinical)
    of_another = mention.status == OTHER
    if mention.status == OWN and not of_patient:
        of_another = _is_anothers(text, mention)
    by_rules = assertion(text, mention.start, mention.end) if asked else Assertion()
    said = answer(text, mention.start, mention.end)
    if said is None and _is_denied(text, mention):
        said = False
    hypothetical = mention.status == HYPOTHETICAL or by_rules.hypothetical
    if hypothetical and not of_another:
        hypothetical = said is None and not _has_happened(text, mention)
    negated = mention.status == NEGATED if said is None else not said
    return Assertion(negated or _is_denied_warning(text, mention), hypothetical, of_another)


def _is_denied(text: str, mention: Mention) -> bool:
    """Whether a note says that its patient denied the effect, or was examined for it in vain."""
    if not may_be_denied(text, mention.start, mention.end):
        return False
    return assertion(text, mention.start, mention.end, clinical=True).negated


def _is_denied_warning(text: str, mention: Mention) -> bool:
    """Whether the effect is only warned of, and the text says that nothing of that happened."""
    is_denied = all_denied(text, mention.end)
    return is_denied and assertion(text, mention.start, mention.end).hypothetical


def _has_happened(text: str, mention: Mention) -> bool:
    """Whether the words around an effect say that the writer had it."""
    before = text[max(0, mention.start - _REACH) : mention.start]
    behind = text[mention.end : mention.end + _BEHIND]
    if _HAPPENED["confirmed"].search(behind):
        return True
    stated = _HAPPENED["stated"].search(before)
    if stated is None or _HAPPENED["unsure"].search(before[: stated.start()]):
        return False
    return assertion(text, mention.start, mention.end) == Assertion()


def _is_anothers(text: str, mention: Mention) -> bool:
    """Whether the rules find another experiencer of an effect that a model took for the writer's, which is
    not sure or is told by the words directly before the effect.
    """
    is_sure = mention.status_score is None or mention.status_score >= SURE
    before = text[max(0, mention.start - _REACH) : mention.start]
    if is_sure and not (_SAYS["has"].search(before) or _SAYS["developed"].search(before)):
        return False
    return assertion(text, mention.start, mention.end).other_experiencer
