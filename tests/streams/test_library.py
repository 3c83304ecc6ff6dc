"""Texts through the models without Kafka give what the topics give."""

from __future__ import annotations

import json

import pytest

from streams.cli.demo.run import samples
from streams.codec import BadRecord
from streams.library import Annotator, load
from streams.records import CodedReport, Summary
from streams.settings import Settings
from streams.topics import TopicsError


@pytest.fixture(scope="module")
def posts() -> Annotator:
    return load("posts", settings=Settings())


@pytest.mark.slow
def test_a_post_becomes_the_record_that_the_topic_of_events_would_have(posts: Annotator) -> None:
    first, second = posts.predict(["Zoloft made me so dizzy that I fell.", {"id": "b", "text": "All fine."}])
    assert isinstance(first, CodedReport)
    assert (first.id, second.id) == ("0", "b")
    assert first.mentions
    assert first.releases == posts.releases == {s.name: loaded.version for s, loaded in posts.steps}
    assert first.source == "posts"
    assert first.record_id.endswith(f"normalization@{'+'.join(posts.releases.values())}")


@pytest.mark.slow
def test_what_comes_of_the_samples_does_not_depend_on_the_batch(posts: Annotator) -> None:
    lines = samples()["posts"].read_text(encoding="utf-8").splitlines()
    inputs = [json.loads(line) for line in lines[:70]]
    together, again = posts.predict(inputs), list(posts.stream(iter(inputs[60:])))
    assert [r.id for r in together] == [i["id"] for i in inputs]
    # Scores may differ in the last digits, since the other texts of a batch differ.
    for one, other in zip(together[60:], again, strict=True):
        mentions = [[(m.start, m.end, m.label) for m in r.mentions] for r in (one, other)]
        events = [[(e.mention, e.pt, e.drugs) for e in r.events] for r in (one, other)]
        assert mentions[0] == mentions[1] and events[0] == events[1]


@pytest.mark.slow
def test_sentences_and_questions_have_their_own_stages() -> None:
    (sentence,) = load("sentences", settings=Settings()).predict(["Clozapine induced agranulocytosis (AG)."])
    assert set(sentence.releases) == {"acronym", "ner", "relation", "normalization"}
    assert [e.long_form for e in sentence.expansions] == ["agranulocytosis"]
    (question,) = load("questions", settings=Settings()).predict(
        ["My mother takes warfarin since May. Can she eat spinach with warfarin?"]
    )
    assert isinstance(question, Summary)
    assert set(question.releases) == {"summarization"}
    (asked,) = load("questions", results="events", settings=Settings()).predict(["Is Zoloft safe?"])
    assert isinstance(asked, CodedReport)
    assert (asked.source, set(asked.releases)) == ("questions", {"ner", "normalization"})
    with pytest.raises(TopicsError, match="records of posts give no summaries"):
        load("posts", results="summaries")


def test_no_texts_give_no_records_and_other_topics_and_what_is_no_input_are_refused(posts: Annotator) -> None:
    assert posts.predict([]) == []
    with pytest.raises(KeyError, match="they are posts, sentences, questions"):
        load("events")
    with pytest.raises(KeyError, match="no stage of questions: ner"):
        load("questions", releases={"ner": "x"}, settings=Settings())
    with pytest.raises(BadRecord, match="text"):
        posts.predict([" "])
    with pytest.raises(BadRecord, match="id"):
        posts.predict([{"text": "rash", "id": ""}])
