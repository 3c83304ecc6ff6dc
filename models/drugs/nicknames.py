"""What posts call a drug for short ("addy", "spiro"), vaccines by their makers ("the Pfizer shot"), and what
is one letter from the name of another drug ("taurine" and tacrine).

Such a word may be something else too, so it names a drug only where a tagger took it for one or a source
states it, and the name of a maker only where the text speaks of a vaccine or of an injection.
"""

from __future__ import annotations

from models.once import once
from models.rules.notation import patterns
from models.tables import DATA, read_tsv

BUNDLED = DATA / "drug_nicknames.tsv"
_MAKER = "maker"
_SAYS = patterns("vaccines")


def generic_of_nickname(name: str, text: str) -> str | None:
    """The nonproprietary name of a drug that `text` calls `name`, in any case; None for other words."""
    plain = _SAYS["form"].sub("", " ".join(name.lower().split()))
    generic, kind = _nicknames().get(plain, (None, ""))
    return generic if kind != _MAKER or _SAYS["vaccine"].search(text) else None


@once
def _nicknames() -> dict[str, tuple[str, str]]:
    return {name: (generic, kind) for name, generic, kind in read_tsv(BUNDLED, ("name", "generic", "kind"))}
