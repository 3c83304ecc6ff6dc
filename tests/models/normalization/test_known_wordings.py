"""Wordings that are kept with their codings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from models.normalization.known_wordings import Known, KnownWordings
from models.types import Coding

NIL = Known(Coding((), True), None)


def test_the_wordings_that_were_not_asked_for_longest_are_dropped() -> None:
    wordings = KnownWordings(most=2)
    wordings.add({"dizzy": NIL, "itchy": NIL}, 2)
    assert wordings.of(["dizzy", "sore"]) == {"dizzy": NIL}
    wordings.add({"sore": NIL}, 1)
    assert list(wordings.of(["dizzy", "itchy", "sore"])) == ["dizzy", "sore"]
    wordings.clear()
    assert wordings.of(["dizzy", "sore"]) == {}


def test_threads_share_the_wordings_and_no_mention_is_counted_twice() -> None:
    wordings = KnownWordings(most=50)

    def work(first: int) -> int:
        counted = 0
        for n in range(500):
            asked = [str(first * n % 97), str(n % 89)]
            known = wordings.of(asked)
            assert all(
                found == Known(Coding((), True, serious=bool(int(w) % 2)), None) for w, found in known.items()
            )
            new = {
                w: Known(Coding((), True, serious=bool(int(w) % 2)), None) for w in asked if w not in known
            }
            wordings.add(new, len(asked))
            counted += sum(wordings.taken().values())
        return counted

    with ThreadPoolExecutor(4) as pool:
        counted = sum(pool.map(work, range(1, 5)))
    assert counted == 4 * 500 * 2
    assert len(wordings.of(map(str, range(100)))) == 50
