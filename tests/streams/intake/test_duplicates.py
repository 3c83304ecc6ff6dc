"""Reposts are found by reference and by their text, in a window of fixed size and time."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from streams.intake.duplicates import _DAY, SHORTEST, Window
from streams.intake.masking import mask, unmasked_parts
from streams.intake.minhash import HEAD, PLACES, plain, signatures
from training.teaching.readers import marked_texts

POST = "Third week on lexapro and I keep yawning in every single meeting, my boss thinks that I hate him"
OTHER = "Lexapro made me gain ten pounds in two months although I eat less than I ever did before it"


@pytest.fixture
def window() -> Window:
    return Window(1000, 7)


def test_a_near_copy_names_the_first_sighting_another_post_about_the_drug_does_not(window: Window) -> None:
    assert window.first("a", POST, 0.0) == (None, "")
    assert window.first("b", OTHER, 1.0) == (None, "")
    assert window.first("c", "RT : " + POST.replace("boss", "bosss") + " 😂", 2.0) == ("a", "text")
    assert window.first("d", POST[:60] + "…", 3.0) == ("a", "text")
    assert len(window) == 2


def test_a_repeated_report_is_what_it_was(window: Window) -> None:
    for _ in range(2):
        assert window.first("a", POST, 0.0) == (None, "")
        assert window.first("b", POST, 0.0)[0] == "a"
        assert window.first("c", "wow", 0.0, repost_of="a") == ("a", "reference")


def test_a_reference_leads_to_the_first_sighting_even_of_an_original_never_seen(window: Window) -> None:
    assert window.first("b", POST, 0.0, repost_of="unseen") == (None, "")
    assert window.first("c", "another text that nobody wrote before", 0.0, repost_of="unseen")[0] == "b"
    assert window.first("d", "a third text of some length, and unlike", 0.0, repost_of="c")[0] == "b"


def test_the_first_repost_of_an_unseen_post_may_be_a_copy_itself(window: Window) -> None:
    window.first("a", POST, 0.0)
    assert window.first("b", POST, 0.0, repost_of="unseen") == ("a", "text")
    assert window.first("c", "comment of some length, unlike it", 0.0, repost_of="unseen") == (
        "a",
        "reference",
    )


def test_a_reference_does_not_lead_to_a_deleted_report(window: Window) -> None:
    window.first("a", POST, 0.0)
    window.first("b", POST, 0.0)
    window.forget("a")
    assert window.first("c", POST, 0.0, repost_of="b") == (None, "")
    assert window.first("d", POST, 0.0, repost_of="b")[0] == "c"


def test_an_edited_report_is_compared_by_its_new_text(window: Window) -> None:
    window.first("a", POST, 0.0)
    assert window.first("a", OTHER, 0.0) == (None, "")
    assert window.first("b", OTHER, 0.0)[0] == "a"
    assert window.first("c", POST, 0.0) == (None, ""), "the first text is gone"


def test_the_window_ends_after_its_days_and_at_its_size(window: Window) -> None:
    window.first("a", POST, 0.0)
    assert window.first("b", POST, 7 * _DAY)[0] == "a"
    assert window.first("c", POST, 7 * _DAY + 1) == (None, "")
    small = Window(1000, 7)
    small.first("a", POST, 0.0)
    rng = np.random.default_rng(0)
    for i in range(1000):
        small.first(f"x{i}", "".join(chr(97 + c) for c in rng.integers(0, 26, 60)), 0.0)
    assert len(small) == 1000
    assert small.first("b", POST, 0.0) == (None, "")
    assert len(small._firsts) <= 1000


def test_a_deleted_report_is_forgotten_and_a_short_text_is_no_copy(window: Window) -> None:
    window.first("a", POST, 0.0)
    window.forget("a")
    window.forget("unknown")
    assert len(window) == 0
    assert window.first("b", POST, 0.0) == (None, "")
    assert window.first("c", "zoloft again", 0.0) == window.first("d", "zoloft again", 0.0) == (None, "")


def test_what_is_learned_from_the_topic_answers_as_before_the_restart(window: Window) -> None:
    window.first("a", POST, 0.0)
    window.first("b", "RT: " + POST, 0.0)
    after = Window(1000, 7)
    after.learn("a", POST, None, 0.0)
    after.learn("b", "RT: " + POST, "a", 0.0)
    assert len(after) == len(window) == 1
    assert after.first("c", POST, 1.0)[0] == "a"
    assert after.first("d", "something else of some length", 1.0, repost_of="b")[0] == "a"


def test_equal_places_of_signatures_estimate_the_similarity_of_the_shingles() -> None:
    rng = np.random.default_rng(1)
    letters = "".join(chr(97 + c) for c in rng.integers(0, 26, 600))
    for cut in (300, 400, 500):
        one, other = letters[:cut], letters[cut - 300 : 600]
        sets = [{t[i : i + 5] for i in range(len(t) - 4)} for t in (one, other)]
        expected = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
        whole = signatures(one)[0], signatures(other)[0]
        assert (whole[0] == whole[1]).mean() == pytest.approx(expected, abs=0.13)
    assert signatures("")[0].shape == (PLACES,)
    assert (signatures(letters)[1] == signatures(letters[:HEAD])[0]).all()
    assert plain("RT @bob: Héllo, wörld! 😴") == "héllo wörld"


def typo(text: str, rng: random.Random) -> str:
    """One wrong, missing, doubled or exchanged letter in about each 60 characters."""
    for _ in range(1 + len(text) // 60):
        i = rng.randrange(len(text) - 1)
        a, b = text[i], text[i + 1]
        text = text[:i] + rng.choice(["x" + b, b, a + a + b, b + a]) + text[i + 2 :]
    return text


#: What reposting does to a text; old retweets were cut to 140 characters.
EDITS: dict[str, Callable[[str, random.Random], str]] = {
    "RT": lambda text, rng: f"RT @user{rng.randrange(999)}: {text}",
    "truncation": lambda text, rng: text[: min(140, int(len(text) * 0.8))] + "…",
    "emoji": lambda text, rng: text.replace(" ", " 😭 ", rng.randint(1, 4)),
    "URL": lambda text, rng: f"{text} https://t.co/{rng.randrange(10**10)}",
    "typo": typo,
    "RT, emoji and URL": lambda text, rng: f"RT @user7: {text.replace(' ', ' 😂 ', 2)} https://t.co/0",
}


def test_reposts_of_real_posts_are_found_and_other_posts_are_not() -> None:
    texts = {plain(marked.text): marked.text for _, marked in marked_texts("posts", "train")}
    posts = [text for key, text in texts.items() if len(key) >= SHORTEST][:400]
    rng, window = random.Random(20), Window(1000, 7)

    def first(id_: str, text: str) -> str | None:
        return window.first(id_, unmasked_parts(*mask(text)), 0.0)[0]

    originals = [i for i, post in enumerate(posts) if first(str(i), post) is None]
    wrong = len(posts) - len(originals)
    right = 0
    for name, edit in EDITS.items():
        found = [(str(i), first(f"{name}{i}", edit(posts[i], rng))) for i in originals]
        hits = sum(id_ == copied for id_, copied in found)
        assert hits >= 0.97 * len(originals), name
        wrong += sum(copied not in (id_, None) for id_, copied in found)
        right += hits
    assert right >= 0.98 * (right + wrong)
