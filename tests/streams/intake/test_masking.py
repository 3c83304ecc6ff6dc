"""What identifies people in a text is masked, and nothing else; the record says what was masked where."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.intake.masking import STAND_INS, mask, unmasked_parts

REGIONS = ("US", "GB")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@bob_1 took zoloft", "@user took zoloft"),
        ("thanks @alice.bsky.social!", "thanks @user!"),
        ("cc @alice@mastodon.social.", "cc @user."),
        ("\uff20bob, @\u2066carol\u2069", "@user, @user\u2069"),
        ("asked u/some_one and /u/other-one", "asked @user and @user"),
        ("/u/day told u/day-dreamer", "@user told @user"),
        ("did:plc:z72i7hdynmk6r22z27h6tvur wrote", "@user wrote"),
        ("see https://x.com/bob/status/1?s=2).", "see [url])."),
        ("HTTP://EX.COM/bob's", "[url]"),
        ("at://did:plc:abc/app.bsky.feed.post/3k", "[url]"),
        ("www.bob.me/about, t.co/abc or bob.com", "[url], [url] or [url]"),
        ("bob.community/me, bob.photos/1 or bob.de/x", "[url], [url] or [url]"),
        ("BOB.NINJA/ME, Bit.Ly/abc and bob.ninja/me", "[url], [url] and [url]"),
        ("mail joe.b+x@ex-ample.co.uk now", "mail [email] now"),
        ("call (415) 555-2671 or +44 20 7946 0958", "call [phone] or [phone]"),
        ("+33 1 42 68 53 00", "[phone]"),
        # With the sign for minus, and with spaces without width.
        ("415\u2212555\u22122671 or 415\u200b555\u200b2671", "[phone] or [phone]"),
        # With the narrow and thin spaces of French typography, and with marks of direction inside.
        ("+33\u202f6\u202f12\u202f34\u202f56\u202f78, 415\u2009555\u20092671", "[phone], [phone]"),
        ("call +1 (\u2066415\u2069) 555-2671, 415\u200e-555\ufeff-2671", "call [phone], [phone]"),
        ("@a https://b.org c@d.net", "@user [url] [email]"),
        ("wa.me/14155552671, 415-555-2671@b.com or 415-555-2671", "[url], [email] or [phone]"),
        # What only looks like a time, a sentence or a number of a package.
        (
            "@bedtime took it, x@bedtime_story, bob@home.com, 2@bedtime.de",
            "@user took it, x@user, [email], [email]",
        ),
        ("nausea.it/mary bob.so/me food.then/me2", "[url] [url] [url]"),
        ("I call a lot 415 555 2671, pilot 415 555 2671", "I call a lot [phone], pilot [phone]"),
        # A number that begins in a URL, and one that ends in it.
        ("https://x.com/?t=+1 415 555 2671 now", "[url] now"),
        ("ask 415 555 2671.com/x now", "ask [url] now"),
    ],
)
def test_what_identifies_people_is_masked(text: str, expected: str) -> None:
    masked, spans = mask(text, REGIONS)
    assert masked == expected
    assert [masked[s.start : s.end] for s in spans] == [STAND_INS[s.kind] for s in spans]
    assert all(stand_in not in unmasked_parts(masked, spans) for stand_in in STAND_INS.values())


@pytest.mark.parametrize(
    "text",
    [
        "took 50mg 2x/day and/or 10 mg at 8:30, 10/12/2019, 1,000,000 IU, 5-10-20 mg",
        "2@50mg, e.g. zoloft. Then nothing.killing me @ night",
        "mg/u/day, http: nothing, 12345678 steps",
        "insulin 20 u/day, ALT 45 U/liter, heparin 12 u/hour.",
        "insomnia 😴 again",
        "Took zoloft, got dizzy.Nausea/vomiting all day",
        "zoloft gave me nausea.vomiting/diarrhea all day",
        "took 2@bedtime of Zoloft, dizzy. 1 @noon, 50mg@night, 2 tabs @dinner, 10 mg @hs.",
        "took 2@bedtime.Then I slept",
        "took it w/food.then/now sick, nausea.it/was bad, rash.but/and, itchy.so/then, hives.is/this ok?",
        "Humira lot 2125550100 gave me hives, batch no. 2125550101, LOT#2125550102, NDC: 2125550103",
        "",
    ],
)
def test_what_looks_like_it_is_not(text: str) -> None:
    assert mask(text, REGIONS) == (text, ())


def test_national_numbers_are_found_for_the_given_countries_only() -> None:
    assert mask("030 901820 anrufen", ("DE",))[0] == "[phone] anrufen"
    assert mask("030 901820 anrufen", ("US",))[0] == "030 901820 anrufen"
    assert mask("+49 30 901820 anrufen")[0] == "[phone] anrufen"


@given(st.text(st.sampled_from("ab@.:/ 0123456789+-\n😴w\u0130"), max_size=80))
def test_the_spans_of_any_text_are_right(text: str) -> None:
    masked, spans = mask(text, REGIONS)
    assert [masked[s.start : s.end] for s in spans] == [STAND_INS[s.kind] for s in spans]
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert spans or masked == text


@pytest.mark.parametrize(
    "part",
    ["a", "a.", "@a", "a@", "1 ", "a-", "://", "a+", "u/", "www.", "1234567 ", "(1) ", "did:plc:", "-."],
)
def test_a_long_text_takes_time_in_proportion_to_its_length(part: str) -> None:
    def seconds(n: int) -> float:
        start = time.process_time()
        mask((part * n)[:n], REGIONS)
        return time.process_time() - start

    # The shortest of three: a collection of garbage in the test process takes longer than a text.
    short, long = (min(seconds(n) for _ in range(3)) for n in (2_500, 20_000))
    # Quadratic time would take 64 times as long.
    assert long < 24 * short + 0.1
