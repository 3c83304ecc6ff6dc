from __future__ import annotations

from string import ascii_lowercase

from models.spelling import ANY, added, exchanged, left_out, replaced


def test_the_four_kinds_of_edit_keep_the_first_letter() -> None:
    assert list(exchanged("abcd")) == ["acbd", "abdc"]
    assert list(left_out("abcd")) == ["acd", "abd", "abc"]
    assert set(added("ab")) == {f"a{c}b" for c in ascii_lowercase} | {f"ab{c}" for c in ascii_lowercase}
    assert set(replaced("abc", ANY)) == {f"a{c}c" for c in ascii_lowercase} | {
        f"ab{c}" for c in ascii_lowercase
    }


def test_the_first_letter_is_changed_where_that_is_asked_for() -> None:
    assert list(exchanged("abc", 0)) == ["bac", "acb"]
    assert list(replaced("cab", {"c": "ks", "a": "e"}, 0)) == ["kab", "sab", "ceb"]
