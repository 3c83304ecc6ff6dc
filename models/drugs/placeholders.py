"""What stands for the name of a drug and names none: "UNKNOWN", "placebo", "study drug"; and which suspected
drugs are products that can be counted.
"""

from __future__ import annotations

from models.drugs import bundled_lexicon
from models.drugs.classes import bundled_classes, class_named
from models.rules.notation import patterns

_SAYS = patterns("placeholders")
#: Characters of the longest name that is looked at.
_LONGEST = 120


def is_placeholder(name: str) -> bool:
    """Whether a name, as a source states it or a text has it, says only that there is a drug, or none."""
    plain = " ".join(name[: _LONGEST + 1].split())
    if len(plain) > _LONGEST:
        return False
    return bool(_SAYS["placeholder"].fullmatch(plain) or _SAYS["blinded"].search(plain))


def specified(name: str) -> str:
    """The name of a class without what says that no more is known of it: "vaccine" of "VACCINE NOS"."""
    return _SAYS["unspecified"].sub("", " ".join(name.split())) if len(name) <= _LONGEST else name


def is_product(name: str) -> bool:
    """Whether a suspected drug, by its name in a record, can be counted as one: no class, no placeholder, and
    no unknown name with a digit, which may be anything ("iphone5", a lot number, a code of a trial).
    """
    if class_named(name) is not None or is_placeholder(name):
        return False
    return not any(c.isdigit() for c in name) or _is_known(name)


def _is_known(name: str) -> bool:
    lexicon = bundled_lexicon()
    return bool(lexicon.is_generic(name) or lexicon.generic(name) or bundled_classes().named(name))
