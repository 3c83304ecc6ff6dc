"""CONORM-NER (CONORM, section 3.1): drugs, adverse events, indications and withdrawal symptoms in a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor

from models.drugs import DrugLexicon
from models.encoder.model import Encoder, encoder_of
from models.encoder.word_pieces import WordPieces
from models.language import ENGLISH
from models.ner.decoding import (
    CONTINUATION,
    OUTSIDE,
    Decoding,
    Floats,
    Numbers,
    coded_columns,
    decoding_of,
    pooled,
    spans_of,
    tags_of,
    viterbi,
)
from models.ner.head import EventHead, Head
from models.ner.mention_rules import (
    barred_words,
    in_handle,
    outside_drugs,
    sound_runs,
    within_sentences,
)
from models.ner.named_events import NAMES, candidates, read_names
from models.ner.reading import Sentence, read_together
from models.ner.status import StatusHead, judged
from models.ner.withdrawals import named_withdrawals
from models.releases.manifest import Release
from models.releases.tensors import check_size, read_tensors
from models.types import CODED_LABELS, DRUG, OWN, Mention, Span

HEAD = "head.safetensors"
#: The heads that say whether a text reports an adverse event, and which of its mentions are one.
EVENT_HEAD, STATUS_HEAD = "event_head.safetensors", "status_head.safetensors"
#: Log-odds of an event beyond which it counts no more.
MAX_LOG_ODDS = 5.0
#: Far below any log-probability, and yet finite.
_NEVER = -1000.0


class _Tagged(NamedTuple):
    tags: list[int]
    """of each word, never X"""
    probabilities: Floats
    """(words,): those of the tags"""
    event: float
    """probability that the sentence reports an adverse event"""
    pieces: WordPieces
    hidden: list[Tensor]
    """of the windows of its pieces"""


class NerModel:
    """Tags each sentence, joins the tags to mentions, and adds drugs from a lexicon.

    With transitions the tags of a sentence are decoded together; without, each word gets its most probable
    tag, as in the paper.

    In any batch a text has the same mentions, and scores equal to 1e-4 (see models/encoder/model.py).
    """

    task = "ner"

    def __init__(  # noqa: PLR0913  the parts of a release
        self,
        encoder: Encoder,
        head: Head,
        labels: Sequence[str],
        lexicon: DrugLexicon | None,
        *,
        event_head: EventHead | None = None,
        status_head: StatusHead | None = None,
        names: DrugLexicon | None = None,
        decoding: Decoding | None = None,
    ) -> None:
        """`head` has one output for each of `tags_of(labels)`; without `lexicon` no drugs are added. Raises
        ValueError where the transitions of `decoding` are of another number of tags.

        With `event_head` the scores of the coded tags are raised by the weighted log-odds (at most 5) that
        their sentence reports an event, and the scores of their mentions are multiplied by that probability.
        With `status_head` each effect has a status, and those that are no event are left out. With `names` of
        adverse events in addition, those that were not tagged are its candidates, as `decoding` says.
        """
        self.encoder = encoder
        self.head = head.eval()
        self.tags = tags_of(labels)
        self.lexicon = lexicon
        self.decoding = decoding or Decoding()
        n, transitions = len(self.tags), self.decoding.transitions
        if transitions is not None and transitions.shape != (n + 1, n):
            raise ValueError(f"transitions of shape {transitions.shape} for {n} tags")
        self.event_head = event_head.eval() if event_head is not None else None
        self.status_head = status_head.eval() if status_head is not None else None
        self.names = names
        self._coded = np.array([tag[2:] in CODED_LABELS for tag in self.tags])
        self._coded_columns = coded_columns(self.tags)
        self.languages: Sequence[str] = ENGLISH
        # A word on a hashtag or a handle may be a drug, or nothing.
        self._only_drug, self._nothing = (
            np.array([0 if tag in allowed else _NEVER for tag in self.tags], np.float32)
            for allowed in ((OUTSIDE, f"B-{DRUG}", f"I-{DRUG}"), (OUTSIDE,))
        )

    @classmethod
    def load(cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> NerModel:
        """Raises ReleaseError when the installed base is not the one the release was trained on, or the
        release decodes in an unknown way.
        """
        encoder = encoder_of(release, device=device, dtype=dtype)
        labels = release.manifest.configuration["labels"]
        # The labels are checked before a head for them is made.
        stored = read_tensors(release.file(HEAD))
        check_size(stored, (encoder.dimension + 1) * len(tags_of(labels)), release.version)
        head = Head(encoder.dimension, len(tags_of(labels)))
        head.load_state_dict({k: v.float() for k, v in stored.items()})
        files = release.manifest.files
        event_head = EventHead(encoder.dimension) if EVENT_HEAD in files else None
        status_head = StatusHead(encoder.dimension) if STATUS_HEAD in files else None
        for file, further in ((EVENT_HEAD, event_head), (STATUS_HEAD, status_head)):
            if further is not None:
                stored = read_tensors(release.file(file))
                check_size(stored, sum(p.numel() for p in further.parameters()), release.version)
                further.load_state_dict({k: v.float() for k, v in stored.items()})
                further.to(device)
        model = cls(
            encoder,
            head.to(device),
            labels,
            DrugLexicon.load(release.file("drugs.tsv")),
            event_head=event_head,
            status_head=status_head,
            names=read_names(release.file(NAMES)) if NAMES in files else None,
            decoding=decoding_of(release),
        )
        model.languages = release.manifest.configuration.get("languages", ENGLISH)
        return model

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[list[Mention]]:
        """Mentions from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[list[Mention]]).validate_python(stored)

    @torch.inference_mode()
    def predict(self, batch: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text, in text order; offsets are code points of that text."""
        split = read_together(batch, self.decoding.window)
        all_tagged = self._tag(batch, split)
        mentions: list[list[Mention]] = [[] for _ in batch]
        for sentence, tagged in zip(split, all_tagged, strict=True):
            mentions[sentence.text] += self._mentions(batch[sentence.text], sentence, tagged)
        found = [self._with_lexicon_drugs(text, own) for text, own in zip(batch, mentions, strict=True)]
        if self.status_head is not None:
            judged: list[list[Mention]] = [[] for _ in batch]
            for sentence, tagged in zip(split, all_tagged, strict=True):
                judged[sentence.text] += self._judged(
                    batch[sentence.text], sentence, tagged, found[sentence.text]
                )
            found = judged
        if not self.decoding.withdrawals_named:
            return found
        return [
            sorted([*own, *named_withdrawals(text, own)], key=_in_text)
            for text, own in zip(batch, found, strict=True)
        ]

    def _judged(
        self, text: str, sentence: Sentence, tagged: _Tagged, found: Sequence[Mention]
    ) -> list[Mention]:
        """The mentions of a sentence, effects with their statuses and without those that are no event."""
        assert self.status_head is not None
        if not sentence.words:
            return []
        start, end = sentence.words[0].start, sentence.words[-1].end
        inside = [m for m in found if start <= m.start < end]

        def with_statuses(mentions: Sequence[Mention], own_from: float) -> list[Mention]:
            assert self.status_head is not None
            return judged(
                self.status_head, text, mentions, tagged.pieces, sentence.words, tagged.hidden, own_from
            )

        made = with_statuses(inside, self.decoding.own_from)
        threshold = self.decoding.named_from
        if self.names is None or not threshold or tagged.event < threshold:
            return made
        named = candidates(self.names, text, sentence.words, inside, tagged.event)
        if not named:
            return made
        drugs = [m for m in inside if m.label == DRUG]
        made += [m for m in with_statuses([*drugs, *named], threshold) if m.status == OWN]
        return sorted(made, key=_in_text)

    @torch.inference_mode()
    def event_probabilities(self, batch: Sequence[str]) -> list[float]:
        """For each text the highest probability of its sentences to report an adverse event, 0 to 1; 1 for
        every text where the release has no head for it.
        """
        split = read_together(batch, self.decoding.window)
        highest = [0.0 if self.event_head else 1.0] * len(batch)
        for sentence, tagged in zip(split, self._tag(batch, split), strict=True):
            highest[sentence.text] = max(highest[sentence.text], tagged.event)
        return highest

    def _tag(self, batch: Sequence[str], sentences_: Sequence[Sentence]) -> list[_Tagged]:
        """Each sentence with its tags; a word without pieces gets O."""
        split = self.encoder.split([[batch[s.text][w.start : w.end] for w in s.words] for s in sentences_])
        windows = [self.encoder.windows(s) for s in split]
        encoded = iter(self.encoder.encode_pieces([w for ws in windows for w in ws]))
        hidden = [[next(encoded) for _ in ws] for ws in windows]
        kept = [[w for w, count in enumerate(s.count) if count] for s in split]
        logs = [
            self._log_probabilities(s, own, states)
            for s, own, states in zip(split, kept, hidden, strict=True)
        ]
        events = [self._event(states) for states in hidden]
        best = self._best_tags(
            [
                self._allowed(batch[s.text], s.words, own, self._weighted(log, event))
                for s, own, log, event in zip(sentences_, kept, logs, events, strict=True)
            ]
        )
        return [
            _Tagged(*_spread(len(s.count), own, tags, log), event, s, states)
            for s, own, tags, log, event, states in zip(split, kept, best, logs, events, hidden, strict=True)
        ]

    def _weighted(self, logs: Floats, event: float) -> Floats:
        """The log-probabilities, those of coded tags raised by the log-odds of an event."""
        if self.event_head is None or not self.decoding.event_weight:
            return logs
        odds = math.log(max(event, 1e-9) / max(1 - event, 1e-9))
        raised = max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, odds)) * self.decoding.event_weight * self._coded
        weighted: Floats = (logs + raised).astype(np.float32)
        return weighted

    def _event(self, hidden: list[Tensor]) -> float:
        """The probability that the sentence with these hidden states reports an adverse event."""
        if self.event_head is None or not hidden:
            return 1.0
        return float(self.event_head(torch.cat(hidden)).sigmoid())

    def _log_probabilities(self, sentence: WordPieces, kept: Sequence[int], hidden: list[Tensor]) -> Floats:
        """(kept words, tags), from the hidden state of each word's first piece."""
        if not kept:
            return np.zeros((0, len(self.tags)), np.float32)
        first = torch.cat(hidden)[[sentence.first[w] for w in kept]]
        logits = self.head(first, torch.zeros(len(kept), device=first.device))
        logits[:, self.tags.index(CONTINUATION)] = _NEVER
        found: Floats = logits.log_softmax(-1).cpu().numpy()
        return pooled(found, self._coded_columns) if self.decoding.labels_pooled else found

    def _allowed(self, text: str, words_: Sequence[Span], kept: Sequence[int], logs: Floats) -> Floats:
        """The log-probabilities without the tags that the words of hashtags and handles must not have."""
        barred = dict(barred_words(text, words_))
        if not barred:
            return logs
        logs = logs.copy()
        for row, word in enumerate(kept):
            if word in barred:
                logs[row] += self._only_drug if barred[word] else self._nothing
        return logs

    def _best_tags(self, logs: Sequence[Floats]) -> list[Numbers]:
        """The tags of each sentence's words."""
        if not logs:
            return []
        if self.decoding.transitions is None:
            return [own.argmax(1) for own in logs]
        lengths = [len(own) for own in logs]
        tags = viterbi(np.concatenate(logs), lengths, self.decoding.transitions)
        return np.split(tags, np.cumsum(lengths)[:-1])

    def _mentions(self, text: str, sentence: Sentence, tagged: _Tagged) -> list[Mention]:
        mentions, spans = [], sentence.words
        runs = spans_of([self.tags[t] for t in tagged.tags], self.decoding.gaps_repaired)
        if sentence.starts:
            runs = within_sentences(runs, sentence.starts)
        for label, start, end in sound_runs(runs, [text[s.start : s.end] for s in spans]) if runs else ():
            first, last = spans[start].start, spans[end - 1].end
            score = float(tagged.probabilities[start:end].mean())
            if label in CODED_LABELS:
                if tagged.event < self.decoding.event_below:
                    continue
                score *= tagged.event
            surface = text[first:last]
            generic = self.lexicon.generic(surface) if self.lexicon and label == DRUG else None
            mentions.append(Mention(first, last, surface, label, round(score, 4), generic))
        return mentions

    def _with_lexicon_drugs(self, text: str, mentions: list[Mention]) -> list[Mention]:
        """The mentions outside of drug names, and the lexicon's drugs that overlap no tagged drug, with
        score 1.
        """
        if self.lexicon is None:
            return outside_drugs(mentions)
        tagged = [m for m in mentions if m.label == DRUG]
        for span, generic in self.lexicon.find(text):
            overlaps = any(m.start < span.end and span.start < m.end for m in tagged)
            if not overlaps and not in_handle(text, span):
                mentions.append(
                    Mention(span.start, span.end, text[span.start : span.end], DRUG, 1.0, generic)
                )
        return sorted(outside_drugs(mentions), key=_in_text)


def _in_text(mention: Mention) -> tuple[int, int, str]:
    return mention.start, mention.end, mention.label


def _spread(n_words: int, kept: Sequence[int], tags: Numbers, logs: Floats) -> tuple[list[int], Floats]:
    """Tags and probabilities of all words from those of the words with pieces; the others are outside."""
    all_tags, probabilities = [0] * n_words, np.ones(n_words, np.float32)
    probabilities[kept] = np.exp(logs[np.arange(len(kept)), tags])
    for w, tag in zip(kept, tags.tolist(), strict=True):
        all_tags[w] = tag
    return all_tags, probabilities
