"""Which of several drugs an effect in a post is due to."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.drugs.suspects_in_posts import NamedDrug, causes
from models.types import Span

#: `{1}` to `{3}` are drugs, `<...>` is the effect.
POSTS = [
    # the nearest one before it
    ("{1} was useless, {2} made me <itch>", (2,), True),
    ("{1} is better than {2}, that one made me <cry>", (2,), True),
    ("{1}: nothing at all. {2}: <swollen feet>", (2,), False),
    ("{1} gave me <a dry cough>, switched to {2} and it is gone", (1,), True),
    ("{1} gave me <a rash>, been put on {2} to treat it", (1,), True),
    ("Got <a stiff neck> from one {1}. They gave me {2} for it", (1,), True),
    # a switch, and its reason
    ("switched from {1} to {2} because of <the shakes>", (1,), True),
    ("{1} is off and {2} is on because my <liver is failing>", (1,), True),
    ("they moved me from {1} to {2} and within a month <I gained 9 lbs>", (2,), False),
    ("swapped {1} for {2} due to the shortage and now I am <a weepy mess>", (2,), False),
    ("switched from {1} to {2}\nwent to the ER because of <chest pain>", (2,), False),
    ("<dizzy> since I switched from {1} to {2}", (2,), True),
    ("<weight gain> when they swapped my {1} for {2}", (2,), True),
    ("<hot flashes> now that I went from {1} to {2}", (2,), True),
    ("<itch> on my arms, so I switched from {1} to {2}", (1,), False),
    ("<nausea>, after which I switched from {1} to {2}", (1,), False),
    ("switched from {1} to {2} in March. The <shakes> went away within a week", (1,), True),
    ("switched from {1} to {2}, <the shakes> have all gone, sleeping fine", (1,), True),
    ("switched from {1} to {2}. The <nausea> stopped after two weeks", (2,), False),
    ("switched to {1} from {2} and now the <constipation> is bad", (1,), False),
    ("They moved me over to {1} from my old {2}. <Itch> ever since", (1,), False),
    ("switched to {1} from {2} because of <the shakes>", (2,), False),
    ("switched to {1} from {2} and <the shakes> went away", (2,), False),
    ("Went to bed after {1}. Woke up from {2} with <a headache>", (2,), False),
    # an order
    ("moved from {1} to {2}. Old one: <sore arms>", (1,), True),
    ("moved from {1} to {2}. Old one: itch. New one: <sore arms>", (2,), True),
    ("went from {1} to {2} as everything tasted odd, <awful dreams> on the first one", (1,), True),
    ("moved from {1} to {2}. <Sick> from the first dose", (2,), False),
    ("{1} for years, then {2}: <itch> on the first, none now", (1,), True),
    ("{1} with my {2} because without it I get <no sleep>", (1, 2), False),
    # a purpose, and what is not blamed
    ("{1} for the knee, {2} for the <cramps>", (1,), False),
    ("{1} it is, since {2} is fine, but <no sleep>", (1,), False),
    ("it was {1}, not {2}, that made me <sick>", (1,), True),
    ("{1}, unlike {2}, gave me <hives>", (1,), True),
    ("not the {1} but the {2} made me <jittery>", (2,), True),
    ("{1} (not {2}) gave me <hives>", (1,), True),
    ("not {1} this time. <Hives> all the same", (1,), False),
    ("I take {1} instead of {2} because of <hives>", (2,), False),
    ("Compared to {1}, {2} makes me <crash> at five", (2,), True),
    ("On {1} now. Compared with {2} I get <bad headaches>", (1,), False),
    ("Compared to {1} and {2}, {3} makes me <crash> at five", (3,), True),
    ("<Insomnia>, but nothing compared to {1} and my {2}", (1, 2), False),
    # taken together
    ("{1} + {2} = <pupils like saucers>", (1, 2), False),
    ("took {1} on top of my {2}. <Heart racing>", (1, 2), False),
    ("{1} for a bad back plus {2} gave me <tremor>", (1, 2), True),
    ("{1}, {2} and {3}: <belly like a drum>", (1, 2, 3), False),
    ("after adding {1} to my {2} I was <so restless>", (1,), False),
    ("they added 5 mg {1} to {2}: <ears ring>", (1,), False),
    ("added {1} to {2} to help with <no libido>", (2,), False),
    ("added {1} to {2} to help with it. Now my <ears ring>", (1,), False),
    ("went from {1} to {2}: <ears ring>", (2,), False),
    ("added {1} to {2} for sleep and now I have <shakes>", (1,), False),
    ("Adding {1} to my {2} for my moods made me <restless>", (1,), False),
    # named behind it
    ("<panic attacks> when starting {2}, none on {1}", (2,), True),
    ("<awful headache> so now on {1}. Then comes {2}", (1,), False),
    ("{1} again. <Awful headache> from {2}", (2,), True),
    ("{1}. I <feel worse> than last year when I was on {2}", (1,), False),
    ("{1} for the <loose stools> caused by {2}", (2,), True),
    ("{1} does nothing for the <headaches> I get from my {2}", (2,), True),
    ("{1} for <nausea> on {2}", (2,), True),
    ("{1} for my <headaches> after starting {2}", (2,), True),
    ("{1}, {2}. <Gained 25> since they added the {2}", (2,), True),
    ("On {1} and {2}. The <tremor> started after they added {2}", (2,), True),
    ("I take {1} and got <a tremor> when I started {2}", (2,), True),
    ("{1} made me <shake> even after I started {2}", (1,), True),
    ("{1} left me with <a tremor> since I started on {2}", (1,), True),
    ("{1}: <no sleep>, and then they added {2}", (1,), False),
    ("{1} gave me <headaches> on {2}", (1,), True),
    ("Itch with {1}, <weight gain> with {2}, and cramps with {3}.", (2,), True),
    ("{1} made me <dizzy> with {2} in my system", (1,), True),
    ("{1}. The other drug was {2}. As it slowly left I had <chills>", (2,), False),
]


def marked(post: str) -> tuple[str, list[NamedDrug], Span]:
    names = {f"{{{n}}}": f"drug{n}x" for n in (1, 2, 3)}
    for mark, name in names.items():
        post = post.replace(mark, name)
    start, end = post.index("<"), post.index(">") - 1
    text = post.replace("<", "").replace(">", "")
    drugs = [NamedDrug(m.start(), m.end(), n) for n in names.values() for m in re.finditer(n, text)]
    return text, drugs, Span(start, end)


@pytest.mark.parametrize(("post", "right", "stated"), POSTS)
def test_an_effect_is_due_to_the_drug_words_say(post: str, right: tuple[int, ...], stated: bool) -> None:
    found = causes(*marked(post))
    assert found == (tuple(f"drug{n}x" for n in right), stated)


def test_one_medicine_is_one_suspect_and_drugs_with_an_effect_between_them_are_two() -> None:
    text = "Zoloft (sertraline) and Lexapro: rash"
    drugs = [NamedDrug(0, 6, "sertraline"), NamedDrug(8, 18, "sertraline"), NamedDrug(24, 31, "escitalopram")]
    assert causes(text, drugs, Span(33, 37)).names == ("sertraline", "escitalopram")
    text = "Celexa (itching), Prozac (insomnia)"
    drugs = [NamedDrug(0, 6, "citalopram"), NamedDrug(18, 24, "fluoxetine")]
    assert causes(text, drugs, Span(26, 34), [8, 26]).names == ("fluoxetine",)
    assert causes(text, drugs, Span(26, 34), [26]).names == ("citalopram", "fluoxetine")
    with pytest.raises(ValueError, match="no drug"):
        causes("rash", [], Span(0, 4))


@pytest.mark.parametrize(
    ("effect", "right", "stated"),
    [
        ("Prozac - insomnia", "fluoxetine", True),
        ("Prozac withdrawal", "fluoxetine", True),
        ("Prozac resistance", "citalopram", False),
    ],
)
def test_an_effect_whose_words_begin_with_a_drug_is_due_to_it(effect: str, right: str, stated: bool) -> None:
    text = f"Celexa - itching\n{effect}"
    drugs = [NamedDrug(0, 6, "citalopram"), NamedDrug(17, 23, "fluoxetine")]
    assert causes(text, drugs, Span(17, len(text))) == ((right,), stated)


WORDS = [
    "drug", "rash", "to", "from", "because", "for", "+", "fine", "made", "the first one", ".", "now", " ",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=20), st.data())
def test_the_suspects_are_drugs_of_the_text_whatever_it_says(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts)
    at = [i for i in range(len(text)) if text.startswith("drug", i)]
    start = data.draw(st.integers(0, len(text) - 2))
    effect = Span(start, data.draw(st.integers(start + 1, len(text))))
    drugs = [NamedDrug(i, i + 4, str(n % 3)) for n, i in enumerate(at)]
    if drugs:
        assert set(causes(text, drugs, effect).names) <= {d.name for d in drugs}


@pytest.mark.parametrize(
    "filler", [" ", "\n", "!", "for ", "mg ", "( ", "because ", "from my ", "fine ", "+ "]
)
def test_the_time_of_a_long_text_is_bounded(filler: str) -> None:
    text = "a" + filler * (99_000 // len(filler)) + "b"
    drugs = [NamedDrug(0, 1, "a"), NamedDrug(len(text) - 1, len(text), "b")]
    started = time.process_time()
    for start in (1, len(text) // 2, len(text) - 2):
        causes(text, drugs, Span(start, start + 1))
    assert time.process_time() - started < 1


def test_of_thousands_of_drugs_in_a_row_the_nearest_are_the_suspects() -> None:
    text = "paxil, " * 5000 + "nausea"
    drugs = [NamedDrug(i, i + 5, str(i)) for i in range(0, 7 * 5000, 7)]
    assert causes(text, drugs, Span(7 * 5000, len(text))).names == tuple(d.name for d in drugs[-51:])


@pytest.mark.parametrize("between", [" rash ", " is fine ", " rash, for the "])
def test_the_time_for_thousands_of_drugs_and_effects_is_bounded(between: str) -> None:
    part = "paxil" + between
    text = part * 2000
    drugs = [NamedDrug(i, i + 5, "paroxetine") for i in range(0, len(text), len(part))]
    started = time.process_time()
    for drug in drugs:
        causes(text, drugs, Span(drug.end + 1, drug.end + 5))
    assert time.process_time() - started < 6


def test_the_time_for_thousands_of_effects_far_behind_a_drug_is_bounded() -> None:
    text = "zoloft and paxil " + "rash, " * 15_000
    drugs = [NamedDrug(0, 6, "sertraline"), NamedDrug(11, 16, "paroxetine")]
    started = time.process_time()
    for start in range(17, len(text), 30):
        causes(text, drugs, Span(start, start + 4))
    assert time.process_time() - started < 6
