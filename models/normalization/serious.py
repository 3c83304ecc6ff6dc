"""What a code with a serious term needs beyond being the nearest: a wrong one is the costliest error."""

from __future__ import annotations

import re

from models.normalization.nil_rule import overlap
from models.types import Candidate

#: Cosine from which on a serious term is believed that shares no letters with the mention. Of PsyTAR's 4,137
#: coded mentions 12 have such a code: 11 right, from .90 on, one wrong, at .70. Of 3,547 tweets and reviews
#: that were read four have: two right, from .85 on, two wrong, up to .72. Other terms have no such
#: bound: below .75 as many codes of those tweets and reviews are right as wrong.
BELIEVED = 0.8
#: In a post such letters are mostly a word of another language, a name or a slip.
_SHORT = re.compile(r"(?:(?:an?|the|my) )?[a-z]{2}")


def lacks_evidence(surface: str, best: Candidate) -> bool:
    """Whether a mention says too little for its best candidate, if the term of that is serious: they share no
    3- or 4-gram of letters, and their cosine is low.
    """
    return best.score < BELIEVED and not (overlap(surface, best.llt) or overlap(surface, best.pt))


def is_short_form_of_posts(surface: str) -> bool:
    """Whether a mention in a post is two small letters ("mi", "a pe"), which are no serious event there."""
    return _SHORT.fullmatch(" ".join(surface.split())) is not None
