"""CONORM-NER (CONORM, section 3.1): drugs, adverse events, indications and symptoms in a text."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from models.assertion.answers import may_affirm
from models.drugs import RELEASE_FILE, DrugLexicon
from models.encoder.model import Encoder, encoder_of
from models.encoder.word_pieces import WordPieces
from models.language import ENGLISH
from models.lexicon import NameLexicon
from models.ner.decoding import (
    CONTINUATION,
    Decoding,
    Doubles,
    Floats,
    Numbers,
    coded_columns,
    decoding_of,
    pooled,
    spans_of,
    tags_of,
)
from models.ner.heads import EventHead, Head
from models.ner.mention_rules import Cover, in_handle, outside_drugs, sound_runs, within_sentences
from models.ner.sentences import Sentence, behind, read_together, stated_before
from models.ner.status_decisions import Case, decided, in_text
from models.ner.status_head import StatusHead
from models.ner.tagging import NEVER, Reading, TagChooser, Tagged, spread, words_of
from models.ner.untagged_events import NAMES, candidates, named_outcomes, named_withdrawals, read_names
from models.releases.manifest import Release
from models.releases.tensors import check_size, read_tensors
from models.text import PlacedWords
from models.types import CODED_LABELS, DRUG, Mention, Stated

H = TypeVar("H", bound=nn.Module)
HEAD = "head.safetensors"
#: Where the encoder computes in 16 bits, a sentence is read again in 32 if its tags are better than any
#: others by less than this in log-probability (docs/architecture.md has what other limits cost).
UNCLEAR = 0.02
#: The head that says whether a sentence reports an adverse event, and the one for the status of each mention.
EVENT_HEAD, STATUS_HEAD = "event_head.safetensors", "status_head.safetensors"


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
        names: NameLexicon | None = None,
        decoding: Decoding | None = None,
        exact: Encoder | None = None,
    ) -> None:
        """`head` has one output for each of `tags_of(labels)`; without `lexicon` no drugs are added. Raises
        ValueError where the transitions of `decoding` are of another number of tags.

        With `event_head` the scores of the coded tags are raised by the weighted log-odds (at most 5) that
        their sentence reports an event, and the scores of their mentions are multiplied by that probability.
        With `status_head` each effect has a status, and those that are no event are left out. With `names` of
        adverse events, the status head also judges names that were not tagged, as `decoding` says. `exact` is
        the encoder in 32 bits where `encoder` is in 16.
        """
        self.encoder = encoder
        self.exact = exact
        self.head = head.eval()
        self.tags = tags_of(labels)
        self.lexicon = lexicon
        self.decoding = decoding or Decoding()
        self._chooser = TagChooser(self.tags, self.decoding)
        self.event_head = event_head.eval() if event_head is not None else None
        self.status_head = status_head.eval() if status_head is not None else None
        self.names = names
        self._coded_columns = coded_columns(self.tags)
        self.languages: Sequence[str] = ENGLISH

    @classmethod
    def load(
        cls,
        release: Release,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        base: str | None = None,
        exact: bool = True,
    ) -> NerModel:
        """`base`: where the base is, if not where its name leads; `exact`: whether sentences whose tags are
        unclear in 16 bits are read again in 32, which takes as much memory again.

        Raises ReleaseError when the installed base is not the one the release was trained on, or the
        release decodes in an unknown way.
        """
        encoder = encoder_of(release, device=device, dtype=dtype, base=base)
        labels = release.manifest.configuration["labels"]
        # The labels are checked before a head for them is made.
        stored = read_tensors(release.file(HEAD))
        check_size(stored, (encoder.dimension + 1) * len(tags_of(labels)), release.version)
        head = Head(encoder.dimension, len(tags_of(labels)))
        head.load_state_dict({k: v.float() for k, v in stored.items()})
        files = release.manifest.files
        event_head = _further(release, EVENT_HEAD, EventHead(encoder.dimension), device)
        status_head = _further(release, STATUS_HEAD, StatusHead(encoder.dimension), device)
        model = cls(
            encoder,
            head.to(device),
            labels,
            DrugLexicon.load(release.file(RELEASE_FILE)),
            event_head=event_head,
            status_head=status_head,
            names=read_names(release.file(NAMES)) if NAMES in files else None,
            decoding=decoding_of(release),
            exact=encoder_of(release, device=device, base=base) if exact and dtype != torch.float32 else None,
        )
        model.languages = release.manifest.configuration.get("languages", ENGLISH)
        return model

    def with_decoding(self, **changes: float) -> NerModel:
        """The same tagger with other values of fields of its decoding that come after the tags."""
        model = copy.copy(self)
        model.decoding = replace(self.decoding, **changes)  # type: ignore[arg-type]
        return model

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[list[Mention]]:
        """Mentions from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[list[Mention]]).validate_python(stored)

    def predict(self, batch: Sequence[str], stated: Sequence[Stated] = ()) -> list[list[Mention]]:
        """The mentions of each text, in text order; offsets are code points of that text. A release may have
        learned to read what its source states (`Decoding.stated_read`) before the text.
        """
        before = (
            [stated_before(s) for s in stated] if self.decoding.stated_read and stated else [""] * len(batch)
        )
        texts = [first + text for first, text in zip(before, batch, strict=True)]
        by_text = self.mentions_of(self.read(texts), self.decoding.event_below)
        return [behind(mentions, len(first)) for mentions, first in zip(by_text, before, strict=True)]

    @torch.inference_mode()
    def read(self, batch: Sequence[str]) -> Reading:
        """What the encoder and the tags say of each sentence."""
        split = read_together(batch, self.decoding.window)
        return Reading(batch, split, *self._tag(batch, split))

    @torch.inference_mode()
    def mentions_of(self, reading: Reading, event_below: float) -> list[list[Mention]]:
        """The mentions of each text; sentences that report an event with a lower probability than
        `event_below` have none with a coded label but withdrawals and outcomes of others
        that are named as such.
        """
        by_text = self._recognised(reading, event_below)
        if not self.decoding.withdrawals_named:
            return by_text
        return [
            sorted(
                [*mentions, *named_withdrawals(text, mentions), *named_outcomes(text, mentions)], key=in_text
            )
            for text, mentions in zip(reading.texts, by_text, strict=True)
        ]

    def _recognised(self, reading: Reading, event_below: float) -> list[list[Mention]]:
        """The mentions by the tags, the lexicons and the heads."""
        batch = reading.texts
        sentences = list(zip(reading.sentences, reading.tagged, strict=True))
        mentions: list[list[Mention]] = [[] for _ in batch]
        words_ = [PlacedWords([], [], []) for _ in batch]
        for sentence, tagged in sentences:
            mentions[sentence.text] += self._mentions(batch[sentence.text], sentence, tagged, event_below)
            words_[sentence.text].add(sentence.words)
        found = [self._with_lexicon_drugs(*one) for one in zip(batch, words_, mentions, strict=True)]
        if self.status_head is None:
            return found
        cases = [self._case(batch[s.text], s, tagged, found[s.text], event_below) for s, tagged in sentences]
        own_from, named_from = self.decoding.own_from, self.decoding.named_from
        all_judged: list[list[Mention]] = [[] for _ in batch]
        parts = decided(self.status_head, reading.hidden, cases, own_from, named_from)
        for (sentence, _), own in zip(sentences, parts, strict=True):
            all_judged[sentence.text] += own
        return all_judged

    def _case(
        self, text: str, sentence: Sentence, tagged: Tagged, mentions: Sequence[Mention], event_below: float
    ) -> Case:
        """The mentions of a sentence, and the names that may become some."""
        words_, threshold = sentence.words, self.decoding.named_from
        start, end = words_.starts[0], words_.ends[-1]
        inside = [m for m in mentions if start <= m.start < end]
        named: list[Mention] = []
        is_event = tagged.event >= threshold
        looks = tagged.event >= event_below and (is_event or may_affirm(text[start:end]))
        if self.names is not None and threshold and looks:
            named = candidates(self.names, text, words_, inside, tagged.event)
        return Case(text, words_, tagged.pieces, tagged.first, inside, named, not is_event)

    def _tag(self, batch: Sequence[str], sentences_: Sequence[Sentence]) -> tuple[Tensor, list[Tagged]]:
        """The hidden states (pieces, dimension) of all sentences, and each sentence with its tags; a word
        without pieces gets O.
        """
        split = self.encoder.split([s.words.texts for s in sentences_])
        hidden = self._hidden(self.encoder, split)
        tagged, margins = self._tagged(batch, sentences_, split, hidden)
        unclear = [] if self.exact is None else np.flatnonzero(margins < UNCLEAR).tolist()
        if self.exact is not None and unclear:
            again = [split[i] for i in unclear]
            exact = self._hidden(self.exact, again)
            read_again, _ = self._tagged(batch, [sentences_[i] for i in unclear], again, exact)
            for i, sentence in zip(unclear, read_again, strict=True):
                first, n = tagged[i].first, len(sentence.pieces.pieces)
                hidden[first : first + n] = exact[sentence.first : sentence.first + n]
                tagged[i] = sentence._replace(first=first)
        return hidden, tagged

    def _hidden(self, encoder: Encoder, split: Sequence[WordPieces]) -> Tensor:
        """(pieces, dimension) of all sentences."""
        encoded = encoder.encode_pieces([w for s in split for w in encoder.windows(s)])
        return torch.cat(encoded) if encoded else torch.zeros(0, encoder.dimension)

    def _tagged(
        self, batch: Sequence[str], sentences_: Sequence[Sentence], split: list[WordPieces], hidden: Tensor
    ) -> tuple[list[Tagged], Floats]:
        """Each sentence with its tags, and by how much they are better than other tags."""
        lengths = np.array([len(s.pieces) for s in split], np.int64)
        starts: Numbers = lengths.cumsum() - lengths
        word_rows = words_of(split, starts)
        logs, events = self._log_probabilities(hidden, word_rows.rows), self._events(hidden, lengths)
        best = self._chooser.best(batch, sentences_, word_rows, logs, events if self.event_head else None)
        columns = *spread(word_rows, best.tags, logs), events.tolist(), split, starts.tolist()
        return [Tagged(*row) for row in zip(*columns, strict=False)], best.margins

    def _events(self, hidden: Tensor, lengths: Numbers) -> Doubles:
        """Of each sentence, of so many pieces, the probability that it reports an adverse event; 1 for those
        without pieces.
        """
        events = np.ones(len(lengths))
        if self.event_head is not None and lengths.any():
            some = torch.from_numpy(lengths[lengths > 0]).to(hidden.device)
            events[lengths > 0] = self.event_head.of_rows(hidden, some).sigmoid().cpu().numpy()
        return events

    def _log_probabilities(self, hidden: Tensor, rows: Numbers) -> Floats:
        """(words, tags), from the hidden state of each word's first piece."""
        # The few pieces that begin no word cost less than to take the rows of the others out before.
        logits = self.head.of_first(hidden)[torch.from_numpy(rows).to(hidden.device)]
        logits[:, self.tags.index(CONTINUATION)] = NEVER
        logs: Floats = logits.log_softmax(-1).cpu().numpy()
        return pooled(logs, self._coded_columns) if self.decoding.labels_pooled else logs

    def _mentions(self, text: str, sentence: Sentence, tagged: Tagged, event_below: float) -> list[Mention]:
        if not any(tagged.tags):
            return []
        mentions, words_ = [], sentence.words
        # No transition leads from O to I: decoding with them leaves no gap.
        is_paper = self.decoding.transitions is None
        runs = spans_of([self.tags[t] for t in tagged.tags], gaps_repaired=is_paper)
        if sentence.starts:
            runs = within_sentences(runs, sentence.starts)
        for label, start, end in sound_runs(runs, words_.texts):
            first, last = words_.starts[start], words_.ends[end - 1]
            # As `mean` computes it, which takes three times as long.
            score = float(np.add.reduce(tagged.probabilities[start:end]) / np.float32(end - start))
            if label in CODED_LABELS:
                if tagged.event < event_below:
                    continue
                score *= tagged.event
            surface = text[first:last]
            generic = self.lexicon.generic(surface) if self.lexicon and label == DRUG else None
            mentions.append(Mention(first, last, surface, label, round(score, 4), generic))
        return mentions

    def _with_lexicon_drugs(self, text: str, words_: PlacedWords, mentions: list[Mention]) -> list[Mention]:
        """The mentions outside of drug names, and the lexicon's drugs among the words that overlap no tagged
        drug, with score 1.
        """
        if self.lexicon is None:
            return outside_drugs(mentions)
        tagged = Cover([m for m in mentions if m.label == DRUG])
        for span, generic in self.lexicon.among(words_):
            if not tagged.overlaps(span) and not in_handle(text, span):
                mentions.append(
                    Mention(span.start, span.end, text[span.start : span.end], DRUG, 1.0, generic)
                )
        return sorted(outside_drugs(mentions), key=in_text)


def _further(release: Release, file: str, head: H, device: str) -> H | None:
    """The head with the weights of a file of the release; None where it has no such file."""
    if file not in release.manifest.files:
        return None
    stored = read_tensors(release.file(file))
    check_size(stored, sum(p.numel() for p in head.parameters()), release.version)
    head.load_state_dict({k: v.float() for k, v in stored.items()})
    return head.to(device)
