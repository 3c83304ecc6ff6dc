"""Tables of triggers: the words by which rules read a text, and what each of them says.

A row has a kind and a trigger, a regular expression in lower case in which a space stands for any white
space. Rows whose kind is in braces are the alternatives of a list; triggers below them refer to it by that
name: `{kin}` is any of its rows. Further columns are notes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from models.tables import read_tsv

#: The name of a list of alternatives in a trigger.
_LIST = re.compile(r"\{[a-z]\w*\}")
#: White space in a trigger; in "(?: ?[:(])" it is an optional space.
_SPACE = re.compile(r" (?![?])")


def read_triggers(path: Path, kinds: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each kind and trigger in the order of the table, with the alternatives in the place of lists; one that
    begins with a list is given for each of its alternatives. ValueError where a kind is none of `kinds`, or a
    list has no row above.
    """
    lists: dict[str, list[str]] = {}
    for kind, trigger, *_ in read_tsv(path, ("kind", "trigger")):
        if missing := [name for name in _LIST.findall(trigger) if name not in lists]:
            raise ValueError(f"{path.name}: {trigger!r} names {missing[0]}, which has no row above it")
        is_list = _LIST.fullmatch(kind)
        if not is_list and kind not in kinds:
            raise ValueError(f"{path.name}: unknown kind {kind!r} of {trigger!r}")
        leading = None if is_list else _LIST.match(trigger)
        heads = lists[leading.group()] if leading else [""]
        rest = trigger[leading.end() :] if leading else trigger
        for head in heads:
            whole = _LIST.sub(lambda m: f"(?:{'|'.join(lists[m.group()])})", head + rest)
            if is_list:
                lists.setdefault(kind, []).append(whole)
            else:
                yield kind, whole


def pattern_of(
    triggers: Sequence[str], before: str = "", behind: str = "", flags: int = 0
) -> re.Pattern[str]:
    """What matches any of the triggers between `before` and `behind`. ValueError where one of them is no
    regular expression.
    """
    own = [_SPACE.sub(r"\\s+", trigger) for trigger in triggers]
    try:
        return re.compile(f"{before}(?:{'|'.join(own)}){behind}", flags)
    except re.error:
        for trigger, pattern in zip(triggers, own, strict=True):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"the trigger {trigger!r} is no regular expression: {error}") from None
        raise
