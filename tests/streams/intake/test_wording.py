"""What a later text is of an earlier one: the same, near, or another."""

from __future__ import annotations

import pytest

from streams.intake.wording import (
    CUT,
    CUT_BY_DOTS,
    agreement,
    borders_of,
    is_repeated,
    own_lines,
    words_of,
)

POST = "Third week on lexapro and I keep yawning in every single meeting, my boss thinks that I am bored"
LETTER = "I have been taking Lexapro 10 mg for two weeks now and it gave me terrible nausea all day long"
FORM = "A 54-year-old woman experienced rash while taking metformin for diabetes. Outcome: recovered."
TAGS = "Lexapro gave me nausea. #medsafety #patientvoice #reportsideeffects #MedSafetyWeek"


@pytest.mark.parametrize(
    "later",
    [
        "RT @bob: " + POST,
        POST.upper(),
        POST + " 😂😂",
        POST.replace(" ", "  "),
        "“" + POST + "”!!!",
        POST.replace("yawning", "yawnig"),
        POST.replace("meeting", "meetting"),
        POST.replace("boss", "bsos"),
        POST.replace("every single", "everysingle"),
        POST.replace("my boss", "m yboss"),
        POST.replace("keep", "kepe").replace("thinks", "thniks"),
        POST.replace("I am", "I'm"),
        POST.replace("that I", "I"),
        POST.replace("and I", "& I"),
        POST.replace("yawning in", "yawning just in"),
    ],
)
def test_a_repost_is_the_same_text(later: str) -> None:
    assert agreement(words_of(POST), words_of(later)) == "same"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (LETTER, LETTER.replace("10 mg", "10mg")),
        (LETTER, LETTER.replace("two", "2")),
        (LETTER, LETTER.replace("I have", "I've")),
        (FORM, FORM.replace("54-year-old", "54 year old")),
        ("Humira and I have not slept well since it", "Humira and I haven't slept well since it"),
        ("Humira and I haven't slept well since it", "Humira and I havent slept well since it"),
        ("nobody told me that Ambien makes you sleepwalk", "noboddy told me that Ambien makes you sleepwalk"),
        ("I have not had hives on Humira for three weeks", "I have nto had hives on Humira for three weeks"),
        ("my husband got hives and told hre of them too", "my husband got hives and told her of them too"),
    ],
)
def test_one_number_dose_or_negation_has_several_spellings(earlier: str, later: str) -> None:
    assert agreement(words_of(earlier), words_of(later)) == "same"


@pytest.mark.parametrize(
    "later",
    [
        LETTER + " #lexapro #tired",
        LETTER + ", and hives",
        LETTER.replace("terrible ", ""),
        "This: “" + LETTER + "” Ugh",
        LETTER.replace("been", "ben")
        .replace("now", "nwo")
        .replace("gave", "gvae")
        .replace("long", "lonk")
        .replace("all", "lal"),
    ],
)
def test_words_may_be_added_or_left_out(later: str) -> None:
    assert agreement(words_of(LETTER), words_of(later)) == "near"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (LETTER, LETTER.replace("terrible", "awful")),
        (LETTER, LETTER.replace("Lexapro", "Zoloft")),
        (LETTER, LETTER.replace("nausea", "insomnia")),
        (FORM, FORM.replace("metformin", "apixaban")),
        (FORM, FORM.replace("recovered", "fatal")),
        (TAGS, TAGS.replace("Lexapro", "Zoloft")),
        (LETTER, LETTER.replace("terrible", "awful") + " #lexapro"),
    ],
)
def test_what_has_other_words_is_decided_by_its_content(earlier: str, later: str) -> None:
    assert agreement(words_of(earlier), words_of(later)) == "reworded"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        # Numbers, doses, units, days, sides.
        (FORM, FORM.replace("54", "55")),
        (LETTER, LETTER.replace("10", "20")),
        (LETTER, LETTER.replace("mg", "mcg")),
        (LETTER, LETTER.replace("two", "three")),
        (LETTER, LETTER.replace("10 mg ", "")),
        ("Moderna on Monday and a fever all night", "Moderna on Friday and a fever all night"),
        ("Rash on my left arm since the Humira pen", "Rash on my right arm since the Humira pen"),
        # Negations.
        ("I have had hives on Humira for three weeks", "I have not had hives on Humira for three weeks"),
        ("ever since Xanax I cannot sleep at all", "never since Xanax I cannot sleep at all"),
        ("I can sleep on Xanax, at last I am calm", "I can't sleep on Xanax, at last I am calm"),
        ("Ambien with side effects, as I expected", "Ambien without side effects, as I expected"),
        ("I have no hives on Humira for three weeks", "I have on hives on Humira for three weeks"),
        ("I have not had hives on Humira for three weeks", "I have now had hives on Humira for three weeks"),
        # Whose case it is.
        ("my wife asked his doctor about hives on Humira", "my wife asked this doctor about hives on Humira"),
        (FORM, FORM.replace("woman", "man")),
        ("He had a seizure on Wellbutrin last night", "She had a seizure on Wellbutrin last night"),
        ("my son got a rash from amoxicillin today", "my daughter got a rash from amoxicillin today"),
        # One word of a short text is another one.
        ("Lexapro gave me nausea", "Lexapro gave me insomnia"),
        ("Lexapro gave me nausea", "Zoloft gave me nausea"),
        ("I took Ambien and sleepwalked", "I took Ambien and slept well"),
        ("Accutane made my lips so dry today", "Accutane made my eyes so dry today"),
        ("Lexapro-induced nausea: a case report", "Zoloft-induced seizure: a case report"),
        # Two words are others.
        (TAGS, TAGS.replace("Lexapro", "Zoloft").replace("nausea", "insomnia")),
        (FORM, FORM.replace("rash", "fever").replace("metformin", "apixaban").replace("diabetes", "stroke")),
        # Only a beginning is shared, and an end.
        (POST, ""),
        ("", ""),
        ("没有副作用今天很好", "有副作用今天很好"),
        ("не болит голова сегодня", "ни болит голова вчера"),
    ],
)
def test_texts_that_tell_of_other_cases_are_neither(earlier: str, later: str) -> None:
    assert agreement(words_of(earlier), words_of(later)) is None
    assert agreement(words_of(later), words_of(earlier)) is None


@pytest.mark.parametrize(
    ("later", "repeated"),
    [
        ("No way!! " + LETTER, True),
        ("2 of my friends too! RT: " + LETTER, True),
        ("My mom had this in 2013: \u201c" + LETTER + "\u201d", True),
        (LETTER + " #2013 #nosleep", True),
        ("Not good \U0001f622 " + LETTER + "... she was right", True),
        # Within a sentence, other words, too many words, and itself.
        ("Not that " + LETTER, False),
        (LETTER + " and no hives", False),
        (LETTER + ", not 10 days", False),
        ("No way!! " + LETTER.replace("nausea", "hives"), False),
        (LETTER + ". " + FORM + " " + POST, False),
        (LETTER, False),
        ("", False),
    ],
)
def test_a_text_between_other_sentences_or_hashtags_is_repeated(later: str, repeated: bool) -> None:
    lines = later.splitlines()
    words = tuple(word for line in lines for word in words_of(line))
    assert is_repeated(words_of(LETTER), words, lines) is repeated


def test_a_short_text_is_not_repeated_in_a_longer_one_and_hostile_texts_take_linear_time() -> None:
    short = "Lexapro gave me such nausea"
    assert not is_repeated(words_of(short), words_of("No way! " + short), ["No way! " + short])
    laughing = "ha. " * 600
    assert borders_of([laughing]) == set(range(601))
    assert not is_repeated(words_of("ha " * 400 + "no"), words_of(laughing), [laughing])
    assert is_repeated(words_of("ha " * 400), words_of(laughing), [laughing])


def test_a_few_words_many_times_over_are_not_compared_in_cubic_time() -> None:
    laughing = tuple(("ha", "no", "ho")[i * i % 7 % 3] for i in range(600))
    assert agreement(laughing, laughing[1:]) is None


def test_the_beginning_of_a_text_is_a_repost_that_was_cut_off() -> None:
    words = words_of(LETTER)
    assert agreement(words, words_of(LETTER[:40]), CUT_BY_DOTS) == "same"
    assert agreement(words, words_of(LETTER[:40]), CUT) is None
    assert agreement(words, words_of(LETTER[:85]), CUT) == "same"
    assert agreement(words, words_of(LETTER[:60] + " but now I feel great"), CUT) is None
    assert agreement(words_of(LETTER[:40]), words, CUT_BY_DOTS) is None, "what came later says more"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("> I started Humira\n> last month\nNothing at all for me", ["Nothing at all for me"]),
        ("&gt; quoted\nmine", ["mine"]),
        ("[quote=ann]old [quote]older[/quote][/quote]mine", ["mine"]),
        ("On Mon, 3 Mar, Ann wrote:\n> old\nmine", ["mine"]),
        ("Originally posted by ann:\nmine", ["mine"]),
        ("Re: Humira and hair\nmine", ["mine"]),
        ("AW: Re: Humira\nmine", ["mine"]),
        ("mine\n--\nDiagnosed in 2014", ["mine"]),
        ("mine\n-- \nann", ["mine"]),
        ("mine\n___\nann", ["mine"]),
        ("mine\nSent from my iPhone", ["mine"]),
        ("mine, first\n\nmine, last", ["mine, first", "mine, last"]),
        ("> only a quote", ["> only a quote"]),
        ("Re: Humira and hair", ["Re: Humira and hair"]),
        ("a dose > 10 mg", ["a dose > 10 mg"]),
        ("my doctor said", ["my doctor said"]),
        ("-- 5 stars", ["-- 5 stars"]),
        ("[quote]never closed", ["[quote]never closed"]),
        ("mine -- as always", ["mine -- as always"]),
        ("", []),
    ],
)
def test_quotes_signatures_and_titles_of_replies_are_left_out(text: str, own: list[str]) -> None:
    assert own_lines(text) == own
