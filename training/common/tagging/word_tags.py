"""Gold mentions of a text as tags of its words."""

from __future__ import annotations

from collections.abc import Sequence

from models.drugs import DrugLexicon
from models.ner.decoding import OUTSIDE
from models.types import DRUG, Span
from training.common.corpora import GoldText


def word_tags(gold: GoldText, spans: Sequence[Span], lexicon: DrugLexicon | None) -> list[str]:
    """The B, I or O tag of each word. Of overlapping mentions the longest is kept. `lexicon`: tags the drugs
    of a corpus that does not annotate them.
    """
    tags = [OUTSIDE] * len(spans)
    wanted = [(m.start, m.end, m.label) for m in sorted(gold.mentions, key=lambda m: m.start - m.end)]
    if lexicon is not None:
        wanted += [(s.start, s.end, DRUG) for s, _ in lexicon.find(gold.text)]
    for start, end, label in wanted:
        inside = [i for i, s in enumerate(spans) if start <= s.start and s.end <= end]
        if inside and all(tags[i] == OUTSIDE for i in inside):
            for i in inside:
                tags[i] = ("B-" if i == inside[0] else "I-") + label
    return tags
