"""Gold tags on words and on pieces, the sub-word flag, batches."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.drugs import DrugLexicon
from models.encoder.model import Encoder
from models.ner.decoding import tags_of
from models.ner.heads import EventHead, Head
from models.text import words
from models.types import ADE, DRUG, INDICATION, LABELS, WITHDRAWAL
from tests.small_corpora import public_corpora
from training.common.corpora import VAERS_REPORTS, CorpusError, GoldMention, GoldText
from training.common.marked_reviews import VAERS
from training.common.tagging.word_tags import word_tags
from training.ner.data import MARKED_REPORTS, UNKNOWN, WITHDRAWAL_WORD, Corpus, Example, examples, read
from training.ner.judge import Settings as JudgeSettings
from training.ner.network import losses_of
from training.ner.release import sources_of
from training.ner.settings import Settings
from training.ner.train import train
from training.teaching.readers import gold_texts

TAGS = tags_of(LABELS)
LEXICON = DrugLexicon({"zoloft": "sertraline", "st john's wort": "hypericum"})


def corpus_of(texts: list[GoldText], unknown: DrugLexicon | None = None) -> Corpus:
    return Corpus(texts, [], LABELS, None, unknown)


def gold(text: str, *mentions: tuple[str, str]) -> GoldText:
    """A text whose mentions are given by their first occurrence."""
    return GoldText(
        "x", text, tuple(GoldMention(text.index(m), text.index(m) + len(m), label) for m, label in mentions)
    )


def test_every_run_validates_with_the_same_sentences(corpus: Path) -> None:
    one, other = (read(corpus, Settings(seed=seed)) for seed in (1, 2))
    for name in ("clinical", "posts"):
        assert one[name].valid == other[name].valid
        assert one[name].valid
        assert not {t.text for t in one[name].valid} & {t.text for t in other[name].train}


def test_files_without_a_sentence_are_refused_before_anything_is_trained(
    corpus: Path, tmp_path: Path
) -> None:
    own = shutil.copytree(corpus, tmp_path / "corpus")
    psytar, negatives = own / "psytar/ner_train.conll", own / "ade/negatives.txt"
    psytar.write_text("", encoding="utf-8")
    settings = Settings(corpora="psytar")
    with pytest.raises(CorpusError, match="no sentence to train on: the files of posts are empty"):
        train(read(own, settings), settings, None)
    negatives.write_text("", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"negatives\.txt has no sentence to train on"):
        read(own, Settings(heads=True))
    assert read(own, Settings()).keys() == {"clinical", "posts"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(gold("a rash"), "O O", id="no mention"),
        pytest.param(gold("awful back pain", ("back pain", ADE)), "O B-ADE I-ADE", id="two words"),
        pytest.param(gold("rash pain", ("rash", ADE), ("pain", ADE)), "B-ADE B-ADE", id="side by side"),
        pytest.param(
            gold("lithium toxicity", ("lithium", DRUG), ("lithium toxicity", ADE)),
            "B-ADE I-ADE",
            id="the longest of two",
        ),
        pytest.param(
            gold("severe back pain now", ("severe back", ADE), ("back pain now", ADE)),
            "O B-ADE I-ADE I-ADE",
            id="the longest of two that cross",
        ),
        pytest.param(gold("can't sleep", ("can't", ADE)), "B-ADE I-ADE I-ADE O", id="a word of three"),
        pytest.param(gold("painful", ("pain", ADE)), "O", id="part of a word"),
        pytest.param(
            gold("painful rash", ("pain", ADE), ("ful rash", ADE)), "O B-ADE", id="from within a word"
        ),
    ],
)
def test_a_words_tag_is_that_of_the_longest_mention_that_holds_it(text: GoldText, wanted: str) -> None:
    assert word_tags(text, words(text.text), None) == wanted.split()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (gold("Zoloft gave rash", ("rash", ADE)), "B-DRUG O B-ADE"),
        (gold("St John's Wort helps"), "B-DRUG I-DRUG I-DRUG I-DRUG I-DRUG O"),
        # Gold comes first where the two overlap.
        (gold("zoloft withdrawal", ("zoloft withdrawal", "WITHDRAWAL")), "B-WITHDRAWAL I-WITHDRAWAL"),
    ],
)
def test_a_corpus_without_drugs_gets_those_of_the_lexicon(text: GoldText, wanted: str) -> None:
    split = wanted.replace("B-DRUG I-DRUG I-DRUG I-DRUG I-DRUG O", "B-DRUG" + " I-DRUG" * 4 + " O").split()
    assert word_tags(text, words(text.text), LEXICON) == split
    assert DRUG not in "".join(word_tags(text, words(text.text), None))


TEXT = "Zoloft gave me no sleep , awful rash and back pain"


@given(
    st.lists(
        st.tuples(st.integers(0, len(TEXT) - 1), st.integers(1, 20), st.sampled_from(LABELS)), max_size=6
    )
)
def test_tags_of_any_mentions_are_well_formed_and_only_where_a_mention_is(
    raw: list[tuple[int, int, str]],
) -> None:
    mentions = tuple(GoldMention(start, min(start + n, len(TEXT)), label) for start, n, label in raw)
    spans = words(TEXT)
    tags = word_tags(GoldText("x", TEXT, mentions), spans, None)
    assert len(tags) == len(spans)
    for i, (tag, span) in enumerate(zip(tags, spans, strict=True)):
        if tag != "O":
            assert any(m.start <= span.start and span.end <= m.end and m.label == tag[2:] for m in mentions)
        if tag.startswith("I-"):
            assert tags[i - 1] in (tag, f"B-{tag[2:]}")


SENTENCES = [
    gold("Zoloft gave me awful insomnia", ("Zoloft", DRUG), ("awful insomnia", ADE)),
    gold("Intravenous azithromycin - induced ototoxicity", ("azithromycin", DRUG), ("ototoxicity", ADE)),
    gold("no \0 nausea \U0001f922 at all", ("nausea", ADE)),
    gold("Aspirin caused a rash", ("Aspirin", DRUG), ("rash", ADE)),
    gold("The weather was fine"),
    gold("Clozapine and severe agranulocytosis", ("Clozapine", DRUG), ("severe agranulocytosis", ADE)),
    gold("hepatotoxicity after ibuprofen", ("hepatotoxicity", ADE), ("ibuprofen", DRUG)),
    gold("He slept well"),
]


def test_flags_tags_and_pieces_stand_in_line(mini: Encoder) -> None:
    for text, example in zip(SENTENCES, examples(corpus_of(SENTENCES), mini, TAGS), strict=True):
        assert len(example.pieces) == len(example.tags) == len(example.flags)
        pieces = mini.tokenizer.convert_ids_to_tokens(example.pieces)
        assert [bool(flag) for flag in example.flags] == [p.startswith("##") for p in pieces]
        assert [TAGS[t] == "X" for t in example.tags] == [p.startswith("##") for p in pieces]
        kept = [TAGS[t] for t in example.tags if TAGS[t] != "X"]
        spans = words(text.text)
        wanted = word_tags(text, spans, None)
        assert kept == [t for t, s in zip(wanted, spans, strict=True) if text.text[s.start : s.end] != "\0"]


def test_a_word_of_many_pieces_has_its_tag_on_the_first(mini: Encoder) -> None:
    (example,) = examples(corpus_of([SENTENCES[1]]), mini, TAGS)
    at = example.tags.index(TAGS.index("B-ADE"))
    assert mini.tokenizer.convert_ids_to_tokens(example.pieces)[at:] == ["ot", "##oto", "##xi", "##city"]
    assert example.flags[at:] == [0, 1, 1, 1]
    assert [TAGS[t] for t in example.tags[at:]] == ["B-ADE", "X", "X", "X"]


def test_an_example_is_no_longer_than_a_window(tiny_bert: str) -> None:
    encoder = Encoder.load(tiny_bert, max_pieces=32)
    (example,) = examples(corpus_of([gold("nausea " * 20)]), encoder, TAGS)
    assert len(example.pieces) == len(example.tags) == len(example.flags) == 30


def test_a_share_of_the_teaching_corpus_is_trained_on_and_nothing_that_is_held_out(corpus: Path) -> None:
    def taught(share: float, heads: bool = False) -> list[GoldText]:
        found = read(corpus, Settings(teaching=share, heads=heads))["teaching"]
        assert (found.valid, found.lexicon) == ([], None)
        return found.train

    whole, half = taught(1.0), taught(0.5)
    every = gold_texts("posts", "train") + gold_texts("clinical", "train")
    assert {t.id for t in whole} == {t.id for t in every}
    assert half == whole[: round(len(whole) / 2)]
    assert not {t.id for t in whole} & {t.id for t in gold_texts("posts", "held_out")}
    assert "teaching" not in read(corpus, Settings())
    # A batch that is named is read whole, whatever the share of the others.
    batch = {t.id for t in every if t.id.startswith("teaching-posts_1-")}
    named = read(corpus, JudgeSettings(teaching=0.0, whole="posts_1", reports=0))["teaching"].train
    assert {t.id for t in named} == batch and batch
    assert {
        t.id for t in read(corpus, JudgeSettings(teaching=0.5, whole="posts_1", reports=0))["teaching"].train
    } >= batch
    # Those that are flagged are mentions only where that is asked for.
    mentions = [sum(len(t.mentions) for t in texts) for texts in (whole, taught(1.0, heads=True))]
    assert mentions[0] <= mentions[1]


def test_marked_narratives_are_read_as_often_as_is_asked(corpus: Path, tmp_path: Path) -> None:
    """With a label and a flag for every mark, and named as training data."""
    shutil.copytree(corpus, tmp_path, dirs_exist_ok=True)
    shutil.copytree(public_corpora(VAERS.file) / "vaers", tmp_path / "vaers")
    settings = Settings(heads=True, reports=2)
    corpora = read(tmp_path, settings)
    assert VAERS_REPORTS in sources_of(settings, corpora, None)
    twice = corpora[MARKED_REPORTS]
    assert len(twice.train) == 2 * len(twice.marked) == 2 * 112
    marks = [(m.label, m.flag) for text in twice.marked.values() for m in text.marks]
    assert (ADE, None) in marks and (ADE, "negated") in marks and (INDICATION, "relieved") in marks
    assert MARKED_REPORTS not in read(corpus, Settings(heads=True))


def test_drugs_that_a_corpus_does_not_annotate_are_not_trained_on(mini: Encoder) -> None:
    text = "St John's Wort and zoloft were studied"
    (example,) = examples(corpus_of([gold(text)], LEXICON), mini, TAGS)
    known = [tag for tag in example.tags if tag != UNKNOWN]
    assert {TAGS[tag] for tag in known} <= {"O", "X"}
    pieces = mini.tokenizer.convert_ids_to_tokens(example.pieces)
    outside = [p for p, tag in zip(pieces, example.tags, strict=True) if tag != UNKNOWN]
    assert outside == ["and", "were", "studied"]
    assert not example.event


def test_a_sentence_with_a_mention_that_is_coded_reports_an_event(mini: Encoder) -> None:
    texts = [gold("a rash", ("rash", ADE)), gold("took it for pain", ("pain", INDICATION)), gold("fine")]
    assert [e.event for e in examples(corpus_of(texts), mini, TAGS)] == [True, False, False]


def test_the_word_withdrawal_is_not_trained_on_where_the_corpus_never_annotates_it(mini: Encoder) -> None:
    texts = [
        gold("awful withdrawals today"),
        gold("withdrawal gave me zaps", ("zaps", WITHDRAWAL)),
        gold("Withdrawl symptoms", ("Withdrawl symptoms", WITHDRAWAL)),
        gold("he was withdrawn"),
    ]
    made = examples(replace(corpus_of(texts), unsettled=WITHDRAWAL_WORD), mini, TAGS)
    unknown = [
        [
            p
            for p, tag in zip(mini.tokenizer.convert_ids_to_tokens(e.pieces), e.tags, strict=True)
            if tag == UNKNOWN
        ]
        for e in made
    ]
    assert unknown == [["withdrawal", "##s"], ["withdrawal"], [], []]
    assert [e.event for e in made] == [None, True, True, False]
    # A name of the terminology that is not annotated is no event, unless it is such a word.
    assert [len(e.effects) for e in made[:3]] == [0, 1, 1]
    assert [len(e.effects) for e in examples(corpus_of(texts[:1]), mini, TAGS)] == [1]


def test_a_text_of_which_it_is_not_known_whether_it_reports_an_event_teaches_the_event_head_nothing(
    mini: Encoder,
) -> None:
    texts = [gold("awful withdrawals today"), gold("a rash", ("rash", ADE))]
    made = examples(replace(corpus_of(texts), unsettled=WITHDRAWAL_WORD), mini, TAGS)
    head, event_head = Head(mini.dimension, len(TAGS)).eval(), EventHead(mini.dimension).eval()

    def loss(*batch: Example) -> float:
        return losses_of(mini, head, batch, event_head)["event"].item()

    assert loss(made[0]) == 0
    assert loss(*made) == pytest.approx(loss(made[1]), rel=1e-4)
