"""Edits within a clause that asks: a pronoun is replaced by the name that it stands for, and words that are
for the writer alone are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from models.summarization.extraction.question_form import capitalised
from models.summarization.sentence_selection import is_question

_ADVERB = r"(?:(?:really|actually|even|just|also|ever|still|usually|normally|all) )?"
#: Predicates behind "is it", "can they" and the like by which the pronoun is a medicine, or an illness.
_OF_MEDICINE = (
    r"interact\w*|interfere|thin|expire|contain|made|gluten|come in|taken|raise|lower|addictive|help with|"
    r"make (?:you|me|your|my|him|her|people)|cause|affect|harm|stay in|work|show up|turn|give (?:you|me)|"
    r"need to be (?:taken|tapered|kept)|"
    # Not "safe for me to take another one", where "it" is what follows.
    r"(?!\w+ for (?:[\w'-]+ ){1,4}to )ok(?:ay)?(?= (?:with|for|during|while|in)\b)|"
    r"(?!\w+ for (?:[\w'-]+ ){1,4}to )safe(?= (?:with|for|during|while|in|when|if)\b|[?.!]*$)"
)
_OF_ILLNESS = (
    r"inherited|hereditary|genetic|passed (?:on|down)|handed down|contagious|curable|treatable|reversible|"
    r"fatal|treated|diagnosed|caused|run in|go away|spread|come back|kill|heal|cured|life threatening|"
    r"terminal|tested|get better|get worse|turn into|skip"
)
_SUBJECT = re.compile(
    r"(?P<before>(?:(?:what|how|why|when|where|which) (?:[\w'-]+ ){0,3}?)?)"
    r"(?P<auxiliary>is|are|was|were|does|do|did|can|could|will|would|should|may|might|has|have) "
    rf"(?P<pronoun>it|this|that|these|those|they) (?P<rest>{_ADVERB}(?:be )?(?P<said>.*))",
    re.IGNORECASE | re.DOTALL,
)
_AFTER = (
    r"(?=[?.!,]|$| (?:with|and|or|while|during|if|when|on|at|for|from|after|before|without|now|"
    r"again|anymore|altogether|suddenly|abruptly|cold|every|down|safely|early|to (?:my|our|his|her|the) "
    r"(?:child|kids|son|daughter|bab|doctor))\b)"
)
_TAKE = (
    r"(?:stop|stopping|take|taking|quit|using|use|crush|store|wean off|come off|stay on|go on|be on|am on|"
    r"is on)"
)
_HAVE = (
    r"(?:treat|treats|treating|cure|cures|have|get|inherit|diagnose|causes|prevent|catch|develop|rid of|"
    r"causes? of|symptoms of|(?:tests?|cures?|treatments?|remedy|specialist) for)"
)
_OBJECT_MEDICINE = re.compile(rf"\b{_TAKE} (?P<pronoun>it|this|that|them|these|those){_AFTER}", re.IGNORECASE)
_OBJECT_ILLNESS = re.compile(rf"\b{_HAVE} (?P<pronoun>it|this|that|them|these|those){_AFTER}", re.IGNORECASE)
#: Words for the medicine that the writer names elsewhere; a pronoun beside them means another one ("take it
#: with my blood thinner").
_OTHER_MEDICINE = re.compile(
    r"\b(?:with|and|or|besides|on top of) (?:my|the|his|her|these|those|other) (?:[\w-]+ )?"
    r"(?:blood thinners?|medicines?|medications?|meds|pills?|tablets?|drugs?|antibiotics?|antidepressants?|"
    r"statins?|insulin)\b",
    re.IGNORECASE,
)
_SINGULAR = {"are": "is", "were": "was", "do": "does", "have": "has"}
_PLURAL = re.compile(r"\w{3,}(?<![sui])s", re.IGNORECASE)
_SINGULAR_S = re.compile(
    r"(?:diabetes|herpes|rabies|measles|shingles|mumps|aids|rickets|hives|meds)", re.IGNORECASE
)
_FILLERS = re.compile(
    r"(?<=\w)(?<!\byou)(?: (?:please|kindly|pls|plz|actually|basically|honestly|exactly|really)|"
    # Not "at all times", nor "by the way it smells".
    r" at all(?! (?:\w+s|cost|of|the|my|our|her|two|three|four|five|other)\b)|"
    r" by the way(?! (?:i|you|he|she|it|we|they|my|his|her|the|a|an|this|that|these|people|of|to|in)\b)|"
    r" for that matter|,? (?:please|pls|thanks|thank you)(?=[?.!]*$))(?=[ ?.!,]|$)",
    re.IGNORECASE,
)
#: A reason at the end of a question, and the person whom it is for. White space is read from where it begins
#: only: a long one would need quadratic time. "Since I had surgery" is a time.
_PRESENT = (
    r"(?:am|is|are|do|does|don['\u2019]t|doesn['\u2019]t|can|can['\u2019]t|cannot|will|have|has|need|needs|want|wants|"
    r"live|lives|work|works|know|knows|take|takes)"
)
_BEHIND = (
    re.compile(
        r"(?:,\s*|(?<!\s)\s+)(?:(?:because|as) (?:i|we|my|he|she|it|our)\b|"
        rf"since (?:i|we|he|she|it)(?:['\u2019](?:m|re)\b|(?:['\u2019]s| {_PRESENT})\b"
        r"(?! (?:been|had|got|gone|started|become)\b)))[^?.!;]*(?=[?.!]*$)",
        re.IGNORECASE,
    ),
    re.compile(
        r" for (?:my|our|his|her|a) (?:[\w-]+ ){0,4}?(?:mother|father|mom|mum|dad|wife|husband|sister|"
        r"brother|friend|cousin|aunt|uncle|grand\w+|nephew|niece)(?:,? who [^,?.!]*)?(?=[,?.!]|$)",
        re.IGNORECASE,
    ),
)
#: In front of what is compared: "the same as my old one", "as soon as I feel better".
_COMPARED = re.compile(r"\b(?:same|such|just|exactly|even|(?:as|so) [\w-]+)\Z", re.IGNORECASE)
#: What the answer depends on: an age or number, and the state of the patient.
_MATTERS = re.compile(
    r"\d|\b(?:pregnan\w*|conceive\w*|bab(?:y|ies)|breast\W?feed\w*|breast\W?fed|nursing|lactating|child|kids?|"
    r"newborn|toddler|infant|elderly|kidneys?|liver|heart|spleen|lungs?|blood|transplant\w*|allerg\w*|"
    r"surgery|operation|drive|driving|drinks?|alcohol\w*|smok\w+|diabet\w*|asthma\w*)\b|"
    r"\bas (?:i|we|he|she|it) (?:do|does|did)\b|\bwho (?!lives?\b|works?\b|is (?:my|our|a|an|the|very|so)\b)",
    re.IGNORECASE,
)
_HANGING = re.compile(r"\b(?:and|or|but|so|that|if|is|are|to|than)[ ,]*[?.!]*$", re.IGNORECASE)
#: Minimum number of words of a question.
_LEAST = 4


def is_plural(name: str) -> bool:
    """Whether a name surely is a plural."""
    last = name.rsplit(maxsplit=1)[-1]
    return (
        not last[:1].isupper() and _PLURAL.fullmatch(last) is not None and _SINGULAR_S.fullmatch(last) is None
    )


def with_name(question: str, name: str, *, drug: bool) -> str | None:
    """The question with a name in place of the pronoun that refers to it; None where no pronoun certainly
    does. `drug`: whether the name is a medicine; else it is an illness.
    """
    if drug and _OTHER_MEDICINE.search(question):
        return None
    found = _SUBJECT.match(question)
    said = _OF_MEDICINE if drug else _OF_ILLNESS
    if found and re.match(rf"(?:{said})\b", found["said"], re.IGNORECASE):
        auxiliary = found["auxiliary"]
        if found["pronoun"].lower() in ("they", "these", "those") and not is_plural(name):
            auxiliary = _SINGULAR.get(auxiliary.lower(), auxiliary.lower())
        elif is_plural(name):
            plural = {v: k for k, v in _SINGULAR.items()}
            auxiliary = plural.get(auxiliary.lower(), auxiliary)
        return capitalised(f"{found['before']}{auxiliary} {name} {found['rest']}")
    places = list((_OBJECT_MEDICINE if drug else _OBJECT_ILLNESS).finditer(question))
    if len(places) != 1 or (found and drug):
        return None
    start, end = places[0].span("pronoun")
    return capitalised(question[:start] + name + question[end:])


def shortened(question: str, *, asks: bool, names: Sequence[str]) -> str:
    """The question without fillers. If it `asks`, a reason at its end and the person whom it is for are
    removed too, unless they contain one of the `names` or something else that matters.
    """
    question = _FILLERS.sub("", question)
    for pattern in _BEHIND if asks and question.endswith("?") else ():
        found = pattern.search(question)
        if found is None or _MATTERS.search(found.group()) or _COMPARED.search(question[: found.start()]):
            continue
        shorter = question[: found.start()] + question[found.end() :]
        if _HANGING.search(shorter):
            continue
        lost = any(n.lower() in found.group().lower() for n in names)
        if not lost and len(shorter.split()) >= _LEAST and is_question(shorter):
            question = shorter if shorter[-1:] in "?.!" else f"{shorter}?"
    return question
