"""Reposts are found by reference and by their text, in a window of fixed size and time."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from streams.intake.duplicates import _DAY, SHORTEST, Sighting, Window
from streams.intake.masking import mask, unmasked_parts
from streams.intake.minhash import HEAD, PLACES, signatures
from streams.intake.wording import words_of
from training.teaching.readers import marked_texts

POST = "Third week on lexapro and I keep yawning in every single meeting, my boss thinks that I hate him"
OTHER = "Lexapro made me gain ten pounds in two months although I eat less than I ever did before it"


@pytest.fixture
def window() -> Window:
    return Window(1000, 7)


NEW = Sighting()


def test_a_repost_names_the_first_sighting_and_another_post_none(window: Window) -> None:
    assert window.sight("a", POST, 0.0) == NEW
    assert window.sight("b", OTHER, 1.0) == NEW
    assert window.sight("c", "RT : " + POST.replace("boss", "bosss") + " 😂", 2.0) == (
        "a",
        "text",
        None,
        False,
    )
    assert window.sight("d", POST[:60] + "…", 3.0) == ("a", "text", None, False)
    bold = POST.replace("lexapro", "\U0001d425\U0001d41e\U0001d431apro").replace("boss", "bo\u200bss")
    assert window.sight("e", bold, 4.0) == ("a", "text", None, False)
    assert len(window) == 2


def test_a_text_that_is_like_an_earlier_one_names_the_first_of_them(window: Window) -> None:
    other = POST.replace("lexapro", "zoloft")
    reworded = Sighting(similar="a", reworded=True)
    window.sight("a", POST, 0.0)
    assert window.sight("b", other, 1.0) == reworded
    assert window.sight("c", other + " #zoloft", 2.0) == reworded, "of another one"
    assert window.sight("d", other, 3.0) == ("b", "text", None, False)
    assert window.sight("e", POST + " #lexapro #tired", 3.0) == Sighting(similar="a")
    assert window.sight("c2", "No way, 2 of us! RT: " + POST + " #2013", 3.0) == Sighting(similar="a")
    assert window.sight("c3", "> " + POST + "\nNot for me, I sleep well", 3.0).similar is None, "a quote"
    assert window.sight("b", other, 4.0) == reworded, "as before"
    assert window.sight("a", POST, 5.0) == NEW
    window.forget("a")
    assert window.sight("f", POST.replace("lexapro", "prozac"), 6.0) == NEW


def test_a_form_for_many_cases_is_no_repost(window: Window) -> None:
    form = "A {}-year-old experienced {} while taking {} for an unknown indication. Outcome unknown."
    seen = [
        window.sight(f"{age} {event} {drug}", form.format(age, event, drug), 0.0)
        for drug in ("metformin", "apixaban", "lisinopril", "sertraline")
        for event in ("rash", "nausea", "dizziness")
        for age in range(40, 60)
    ]
    assert {one.first for one in seen} == {None}
    assert all(one.similar is None or one.similar.startswith(f"{40 + i % 20} ") for i, one in enumerate(seen))


THREADS = {
    "title": "Re: Did you switch from Humira to a biosimilar and how did that go for you?\n{}",
    "title without a mark": "Switching from Humira to a biosimilar, your experience please\n{}",
    "quote": "> I started Humira last month, did anybody of you lose hair or gain weight on it?\n{}",
    "signature": "{}\n--\nDiagnosed with RA in 2014, on Humira since 2016, mother of three, day by day",
    "footer": "{}\nOn Humira since 2016, proud mother of three, living one day at a time, ask me anything",
}
REPLIES = (
    "Hives on both arms after the second pen, the rheumatologist stopped it.",
    "Nothing at all for me, feeling great.",
    "My psoriasis came back within six weeks.",
    "Headache and fever the day after every injection.",
)


@pytest.mark.parametrize("frame", THREADS.values(), ids=THREADS)
def test_what_the_posts_of_a_thread_share_is_left_out(window: Window, frame: str) -> None:
    seen = [window.sight(str(i), frame.format(reply), 0.0) for i, reply in enumerate(REPLIES)]
    assert seen == [NEW] * len(REPLIES)
    reposted = frame.format(REPLIES[0].replace("second", "secnod"))
    assert "0" in window.sight("again", reposted, 0.0)
    elsewhere = window.sight("elsewhere", "An answer about Zoloft\n" + REPLIES[3], 0.0)
    assert elsewhere.first is None, "what is answered decides what it tells"


def test_a_text_that_may_not_be_kept_is_found_again_only_as_a_whole(window: Window) -> None:
    window.sight("a", POST, 0.0, keeps_text=False)
    assert window.sight("b", POST + "!", 0.0, keeps_text=False).first == "a"
    assert window.sight("c", POST + " indeed", 0.0, keeps_text=False) == NEW
    assert not any(text for pair in window._texts for text in pair)


def test_of_a_long_text_only_the_whole_is_a_repost(window: Window) -> None:
    story = " ".join(f"{OTHER} {chr(97 + i)}{chr(98 + i)}." for i in range(24))
    assert window.sight("a", story + " Then came a rash.", 0.0) == NEW
    assert window.sight("b", story + " Then came the fever.", 0.0) == Sighting(similar="a", reworded=True)
    assert window.sight("c", story + " Then came a rash!", 0.0).first == "a"
    assert window.sight("d", story[:140] + "…", 0.0).first == "a"


def test_a_repeated_report_is_what_it_was(window: Window) -> None:
    for _ in range(2):
        assert window.sight("a", POST, 0.0) == NEW
        assert window.sight("b", POST, 0.0)[0] == "a"
        assert window.sight("c", "wow", 0.0, repost_of="a") == ("a", "reference", None, False)


def test_a_reference_leads_to_the_first_sighting_even_of_an_original_never_seen(window: Window) -> None:
    assert window.sight("b", POST, 0.0, repost_of="unseen") == NEW
    assert window.sight("c", "another text that nobody wrote before", 0.0, repost_of="unseen")[0] == "b"
    assert window.sight("d", "a third text of some length, and unlike", 0.0, repost_of="c")[0] == "b"


def test_the_first_repost_of_an_unseen_post_may_be_a_copy_itself(window: Window) -> None:
    window.sight("a", POST, 0.0)
    assert window.sight("b", POST, 0.0, repost_of="unseen")[:2] == ("a", "text")
    comment = window.sight("c", "comment of some length, unlike it", 0.0, repost_of="unseen")
    assert comment[:2] == ("a", "reference")


def test_a_reference_does_not_lead_to_a_deleted_report(window: Window) -> None:
    window.sight("a", POST, 0.0)
    window.sight("b", POST, 0.0)
    window.forget("a")
    assert window.sight("c", POST, 0.0, repost_of="b") == NEW
    assert window.sight("d", POST, 0.0, repost_of="b")[0] == "c"


def test_an_edited_report_is_compared_by_its_new_text(window: Window) -> None:
    window.sight("a", POST, 0.0)
    assert window.sight("a", OTHER, 0.0) == NEW
    assert window.sight("b", OTHER, 0.0)[0] == "a"
    assert window.sight("c", POST, 0.0) == NEW, "the first text is gone"


def test_the_window_ends_after_its_days_and_at_its_size(window: Window) -> None:
    window.sight("a", POST, 0.0)
    assert window.sight("b", POST, 7 * _DAY)[0] == "a"
    like = POST.replace("lexapro", "zoloft")
    assert window.sight("like a", like, 7 * _DAY).similar == "a"
    assert window.sight("c", POST, 7 * _DAY + 1) == NEW
    assert window.sight("like it", like + " #zoloft", 7 * _DAY + 1).similar in (None, "c"), "a is too old"
    small = Window(1000, 7)
    small.sight("a", POST, 0.0)
    rng = np.random.default_rng(0)
    for i in range(1000):
        small.sight(f"x{i}", "".join(chr(97 + c) for c in rng.integers(0, 26, 60)) + "\nfoot", 0.0)
    assert len(small) == len(small._exact) == 1000
    assert small.sight("b", POST, 0.0) == NEW
    assert len(small._firsts) <= 1000 and len(small._frames._of) <= 1000


def test_a_deleted_report_is_forgotten_and_a_short_text_is_no_copy(window: Window) -> None:
    window.sight("a", POST, 0.0)
    window.forget("a")
    window.forget("unknown")
    assert len(window) == len(window._exact) == 0 and not any(text for pair in window._texts for text in pair)
    assert window.sight("b", POST, 0.0) == NEW
    assert window.sight("c", "zoloft again", 0.0) == window.sight("d", "zoloft again", 0.0) == NEW


def test_what_is_learned_from_the_topic_answers_as_before_the_restart(window: Window) -> None:
    texts = {"a": POST, "b": "RT: " + POST, "c": POST.replace("lexapro", "zoloft")}
    seen = {id_: window.sight(id_, text, 0.0) for id_, text in texts.items()}
    after = Window(1000, 7)
    for id_, text in texts.items():
        after.learn(id_, text, seen[id_], 0.0)
    assert len(after) == len(window) == 2
    assert after.sight("d", POST, 1.0)[0] == "a"
    assert after.sight("e", "something else of some length", 1.0, repost_of="b")[0] == "a"
    assert after.sight("f", texts["c"] + " #zoloft", 1.0) == Sighting(similar="a", reworded=True)


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
    assert words_of("RT @bob: Héllo, wörld! 😴") == ("héllo", "wörld")


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
    texts = {" ".join(words_of(marked.text)): marked.text for _, marked in marked_texts("posts", "train")}
    posts = [text for key, text in texts.items() if len(key) >= SHORTEST][:400]
    rng, window = random.Random(20), Window(1000, 7)

    def first(id_: str, text: str) -> str | None:
        return window.sight(id_, unmasked_parts(*mask(text)), 0.0)[0]

    originals = [i for i, post in enumerate(posts) if first(str(i), post) is None]
    wrong = len(posts) - len(originals)
    right = 0
    for name, edit in EDITS.items():
        found = [(str(i), first(f"{name}{i}", edit(posts[i], rng))) for i in originals]
        hits = sum(id_ == copied for id_, copied in found)
        # A misspelt number, negation or person is no slip.
        assert hits >= (0.7 if edit is typo else 0.98) * len(originals), name
        wrong += sum(copied not in (id_, None) for id_, copied in found)
        right += hits
    assert not wrong and right
