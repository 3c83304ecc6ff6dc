"""The answers with an opening that a message offers, and the features by which a ranker compares them with
the answer that is a part of the message.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from models.summarization.editing.guard import STRICT, Limits, allowed
from models.summarization.editing.intent import NEGATION, NUMBER, PRONOUN, Intent, content
from models.summarization.editing.openings import CONTENTS, CUES, INFORMATION, KINDS, Plan
from models.summarization.editing.slots import Slot, slots
from models.summarization.extraction.key_words import FUNCTION_WORDS
from models.summarization.medical_entities import word_keys

#: Minimum probability of a kind, maximum number of kinds for a message, and minimum probability of a second
#: kind in one question.
_LEAST_KIND, _MOST_KINDS, _LEAST_FURTHER = 0.12, 3, 0.3
#: Minimum number of nouns of LISTED with which a question for information lists them.
_LEAST_NOUNS = 2
#: Larger counts are cut to this.
_MOST_CONTENT, _MOST_LOST, _MOST_NAMES = 10, 8, 3
KEPT = (
    "kept",
    "kept_score",
    "kept_words",
    "kept_asks",
    "kept_names",
    "kept_sure",
    "kept_pronoun",
    "kept_yes_no",
    "kept_content",
    "kept_best_kind",
)
OPENED = (
    "kind",
    "kind_best",
    "further",
    "further_kind",
    "left_kind",
    "cue_in_clause",
    "cue_in_text",
    "slot",
    "slot_first",
    "slot_log",
    "slot_joined",
    "slot_phrase",
    "slot_in_clause",
    "slot_inserted",
    "slot_words",
    "slot_drug",
    "slot_term",
    "slot_subject",
    "slot_capitals",
    "lost",
    "lost_asked",
    "lost_yes_no",
    "lost_names",
    "lost_number",
    "lost_negation",
    "slot_share_in_clause",
    "slot_in_longer",
    "nouns",
)
#: The features of an answer, in the order of `kept_features` and `edits`.
FEATURES = (*KEPT, *OPENED, *(f"is_{kind}" for kind in KINDS))


class Edit(NamedTuple):
    """An answer with an opening."""

    text: str
    kinds: tuple[int, ...]
    """places in KINDS"""
    slot: Slot
    features: list[float]


def kept_features(intent: Intent) -> list[float]:
    """FEATURES of the extracted answer."""
    kept = intent.kept
    own = [
        1.0,
        kept.score,
        math.log(max(1, len(kept.text.split()))),
        float(intent.asks),
        float(len(kept.names)),
        float(kept.sure),
        float(PRONOUN.search(kept.chosen.text) is not None),
        float(intent.yes_no),
        float(min(len(content(kept.text)), _MOST_CONTENT)),
        max(intent.kinds),
    ]
    return [*own, *[0.0] * (len(FEATURES) - len(KEPT))]


def edits(intent: Intent, limits: Limits = STRICT) -> list[Edit]:
    """The answers with an opening that are allowed for a message."""
    offered = slots(intent.message, intent.kept.chosen, intent.names, intent.probabilities)
    out = []
    for plan in _plans(intent):
        for slot in offered:
            text = plan.worded(slot.text)
            if allowed(intent, plan, slot, text, limits):
                longer = any(slot.text.lower() in o.text.lower() and o.text != slot.text for o in offered)
                row = [*_kind_features(intent, plan), *_slot_features(intent, slot)]
                row += [*_lost_features(intent, plan, slot, text), float(longer), float(len(plan.nouns))]
                of_kind = [float(i == plan.kinds[0]) for i in range(len(KINDS))]
                out.append(Edit(text, plan.kinds, slot, [*[0.0] * len(KEPT), *row, *of_kind]))
    return out


def _plans(intent: Intent) -> list[Plan]:
    """The possible questions: each likely kind, two of them together, and information with listed nouns."""
    kinds = intent.kinds
    order = sorted(range(len(kinds)), key=lambda i: (-round(kinds[i], 9), i))[:_MOST_KINDS]
    single = [i for i in order if kinds[i] >= _LEAST_KIND] or order[:1]
    pairs = [
        (a, b) for a in single for b in single if a != b and kinds[b] >= _LEAST_FURTHER and {a, b} != CONTENTS
    ]
    plans = [Plan(own, ()) for own in (*((i,) for i in single), *pairs)]
    return [*plans, Plan((INFORMATION,), intent.nouns)] if len(intent.nouns) >= _LEAST_NOUNS else plans


def _kind_features(intent: Intent, plan: Plan) -> list[float]:
    """The features from `kind` to `cue_in_text`."""
    kinds, first = intent.kinds, plan.kinds[0]
    p = min(max(kinds[first], 0.01), 0.99)
    return [
        math.log(p / (1 - p)),
        float(kinds[first] >= max(kinds)),
        float(len(plan.kinds) > 1),
        kinds[plan.kinds[1]] if len(plan.kinds) > 1 else 0.0,
        max((k for i, k in enumerate(kinds) if i not in plan.kinds), default=0.0),
        float(CUES[first].search(intent.clause) is not None),
        float(CUES[first].search(intent.message.text) is not None),
    ]


def _slot_features(intent: Intent, slot: Slot) -> list[float]:
    """The features from `slot` to `slot_capitals`."""
    part = intent.kept.chosen.part
    return [
        slot.probability,
        float(slot.rank == 0),
        math.log(max(slot.probability, 0.01)),
        float(slot.source == "joined"),
        float(slot.source == "phrase"),
        float(part.start <= slot.span.start and slot.span.end <= part.end),
        float(any(slot.text.lower() == n.text.lower() for n in intent.kept.names)),
        float(len(slot.text.split())),
        *(float(source in slot.sources) for source in ("drug", "term", "subject", "capitals")),
    ]


def _lost_features(intent: Intent, plan: Plan, slot: Slot, text: str) -> list[float]:
    """The features from `lost` to `slot_share_in_clause`."""
    keys = frozenset(word_keys(text))
    own = frozenset(word_keys(slot.text)) - FUNCTION_WORDS
    lost = sum(not any(CUES[k].fullmatch(w) for k in plan.kinds) for w in intent.content - keys)
    lost = min(lost, _MOST_LOST)
    names = sum(not set(word_keys(n)) & keys for n in (*intent.drugs, *intent.terms))
    return [
        float(lost),
        lost * float(intent.asks),
        lost * float(intent.yes_no),
        float(min(names, _MOST_NAMES)),
        float(not intent.numbers <= set(NUMBER.findall(text))),
        float(intent.negated and NEGATION.search(text) is None),
        len(own & frozenset(word_keys(intent.clause))) / max(1, len(own)),
    ]
