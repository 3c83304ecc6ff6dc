"""Types of consumer questions: the cue words of each, and the template of its short question."""

from __future__ import annotations

#: Where the subject of the question is inserted into a template.
SLOT = "{}"
#: A pattern of cue words and the template of their type; the last one is for texts without cue words.
CUES = (
    (r"side effects?|adverse", "What are the side effects of {}?"),
    (r"ingredients?|gluten|contain", "What are the ingredients of {}?"),
    (r"interact\w*|together with", "What drugs interact with {}?"),
    (r"prognosis|life expectancy|survive|long term", "What is the prognosis for {}?"),
    (r"inherit\w*|hereditary|genetic\w*", "Is {} inherited?"),
    (r"diagnos\w+ of|how .{0,20}diagnosed|tests? for", "How is {} diagnosed?"),
    (r"specialists?|doctors? who|physicians? who", "How can I find physician(s) who specialize in {}?"),
    (r"treat\w*|cure\w*|remed\w+|medicines? for|medications? for|help", "What are the treatments for {}?"),
    (r"causes?|caused|why", "What are the causes of {}?"),
    (r"symptoms?|signs? of", "What are the symptoms of {}?"),
    (r"", "Where can I find information on {}?"),
)
