"""Effects of the writer's that a model takes for feared or asked about, in pairs of texts."""

from __future__ import annotations

import pytest

from models.assertion.flags import asserted
from models.types import HYPOTHETICAL, NEGATED, OTHER, Assertion
from tests.models.assertion.test_flags import judged

ASKED = Assertion(hypothetical=True)

#: It happened; and, beside it, it did not, or nobody says that it did.
STATED = [
    (
        "Took cephalexin and got <hives>. Can I finish the pack?",
        "If I take cephalexin and get <hives>, what then?",
    ),
    ("I developed a <limp> on Levaquin. Anyone?", "Could I develop a <limp> on Levaquin?"),
    (
        "Since Friday on Bactrim I've got a <sore mouth>, is that normal?",
        "Is a <sore mouth> normal on Bactrim?",
    ),
    ("My pills have made me <sleepy>. Is yours the same?", "Will these pills have made me <sleepy> by noon?"),
    (
        "started Chantix and then ended up with <nightmares>, do I stop?",
        "do people end up with <nightmares> on Chantix?",
    ),
    (
        "We both got <the runs> from metformin, how long does it last",
        "how many get <the runs> from metformin",
    ),
    ("Paxil gave me a <rash>, what cream helps?", "Would Paxil give me a <rash>?"),
    ("i just got really bad <acne> on the depo, will it go", "does everyone get <acne> on the depo"),
    ("The injection caused my <knee to swell>, is that usual?", "can the injection cause a <knee to swell>?"),
    ("Tegretol is making me so <dizzy>, should I call?", "should I call if Tegretol is making me so <dizzy>"),
    ("We came down with <a fever> after the flu jab, is it the jab?", "did anyone come down with <a fever>?"),
    ("I have suddenly developed <a stutter>, could it be Topamax?", "I worry I will develop <a stutter>"),
    ("Used the patch and broke out in <welts>. Safe to go on?", "People break out in <welts>, is it safe?"),
    (
        "Second dose of Shingrix made me <throw up>. Third one?",
        "I hope the second dose won't make me <throw up>",
    ),
    ("Stopped Paxil and now got <brain zaps>, how long?", "What if I stop and get <brain zaps>?"),
    ("took it and got some <itching>; is it an allergy?", "is <itching> an allergy?"),
    ("The drops have caused me to get <red eyes>, normal?", "might the drops cause <red eyes>?"),
    ("on day 3 I got a <racing heart>, do I wait?", "on day 3 people may get a <racing heart>"),
    ("Allegra made my <mouth dry>, what helps?", "nothing so far, but would it have made my <mouth dry>?"),
    ("I recently got <gout>. Is it the water pill?", "I never got <gout>. Is it the water pill?"),
]
CONFIRMED = [
    ("Does Lyrica cause <weight gain>? It does.", "Does Lyrica cause <weight gain>? It doesn't."),
    ("does it give you <gas>... it sure does", "does it give you <gas>... it may"),
    (
        "can Adderall kill your <appetite>? because I forgot to eat for two days",
        "can Adderall kill your <appetite>? I start Monday",
    ),
    ("do your <gums bleed> on Yaz? mine do", "do your <gums bleed> on Yaz? mine do not"),
    (
        "is <a dry cough> common on this? Yes! I have it too",
        "is <a dry cough> common on this? Yes, so they say",
    ),
    ("did your <skin peel> on Retin-A? Mine did.", "did your <skin peel> on Retin-A? Mine didn't."),
    (
        "will <the shakes> come from lithium? yep, mine are here",
        "will <the shakes> come from lithium? yep, often",
    ),
    (
        "They warned me about <hair loss> and they were right.",
        "They warned me about <hair loss> and they were wrong.",
    ),
    (
        "the vet said <vomiting> may follow and he was so right",
        "the vet said <vomiting> may follow, all right then",
    ),
    (
        "I was scared of <zaps> when stopping and now it's happening",
        "I was scared of <zaps> when stopping, nothing is happening",
    ),
    ("I did not believe in <the fog> until I had it", "I did not believe in <the fog> at all"),
    ("The sheet lists <bruising>: confirmed, arms all purple", "The sheet lists <bruising>, not confirmed"),
    (
        "I was told to expect <cravings>, and boy did they come",
        "I was told to expect <cravings>, did they come?",
    ),
    ("Anyone with <hot flashes> like I do?", "Anyone with <hot flashes> like I should watch for?"),
    ("I hoped to be spared <the cough>, but here it is", "I hoped to be spared <the cough>, and I was"),
    (
        "does Zyrtec make you <drowsy>? yes. I am asleep at my desk",
        "does Zyrtec make you <drowsy>? yes or no",
    ),
    ("People said <rash>, and it is here", "People said <rash>, and it is not here"),
    (
        "My nurse said I may get <bloated>. Oh, she was right",
        "My nurse said I may get <bloated>. Oh, was she right?",
    ),
    ("can it cause <insomnia>?? cuz my eyes won't close", "can it cause <insomnia>?? cuz the label is vague"),
    ("is <ringing> listed? It does ring, they do say so", "is <ringing> listed? It is not"),
]


@pytest.mark.parametrize(("happened", "asked"), [*STATED, *CONFIRMED])
def test_what_words_say_has_happened_is_not_only_asked_about(happened: str, asked: str) -> None:
    assert asserted(*judged(happened, HYPOTHETICAL, 0.95)) == Assertion()
    assert asserted(*judged(asked, HYPOTHETICAL, 0.95)) == ASKED


def test_these_words_say_nothing_of_what_is_denied_or_anothers() -> None:
    text, mention = judged("Took it and got <hives>.", NEGATED, 0.95)
    assert asserted(text, mention) == Assertion(negated=True)
    text, mention = judged("Took it and got <hives>.", OTHER, 0.95)
    assert asserted(text, mention).other_experiencer
