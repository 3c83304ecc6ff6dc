"""CONORM-NER (CONORM, section 3.1): drugs, adverse events, indications and withdrawal symptoms in a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from models.drugs import DrugLexicon
from models.encoder.model import Encoder, WordPieces, encoder_of
from models.ner.decoding import CONTINUATION, spans_of, tags_of
from models.ner.head import Head
from models.releases.manifest import Release
from models.releases.tensors import check_size, read_tensors
from models.text import sentences, words
from models.types import DRUG, Mention, Span


class _Sentence(NamedTuple):
    text: int
    """index of the text in the batch"""
    words: list[Span]


class NerModel:
    """Tags each sentence word by word, joins the tags to mentions, and adds drugs from a lexicon.

    In any batch a text has the same mentions, and scores equal to 1e-4 (see models/encoder/model.py).
    """

    task = "ner"

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        labels: Sequence[str],
        lexicon: DrugLexicon | None,
        *,
        gaps_repaired: bool = True,
    ) -> None:
        """`head` has one output for each of `tags_of(labels)`; without `lexicon` no drugs are added."""
        self.encoder = encoder
        self.head = head.eval()
        self.tags = tags_of(labels)
        self.lexicon = lexicon
        self.gaps_repaired = gaps_repaired

    @classmethod
    def load(cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> NerModel:
        """Raises ReleaseError when the installed base is not the one the release was trained on."""
        encoder = encoder_of(release, device=device, dtype=dtype)
        configuration = release.manifest.configuration
        labels = configuration["labels"]
        stored = read_tensors(release.file("head.safetensors"))
        check_size(stored, (encoder.dimension + 1) * len(tags_of(labels)), release.version)
        head = Head(encoder.dimension, len(tags_of(labels)))
        head.load_state_dict({k: v.float() for k, v in stored.items()})
        lexicon = DrugLexicon.load(release.file("drugs.tsv"))
        repaired = configuration.get("repair", True)
        return cls(encoder, head.to(device), labels, lexicon, gaps_repaired=repaired)

    @torch.inference_mode()
    def predict(self, batch: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text, in text order; offsets are code points of that text."""
        split = [_Sentence(i, words(text, s)) for i, text in enumerate(batch) for s in sentences(text)]
        mentions: list[list[Mention]] = [[] for _ in batch]
        sentence_words = [[batch[s.text][w.start : w.end] for w in s.words] for s in split]
        for sentence, (tags, probabilities) in zip(split, self._tag(sentence_words), strict=True):
            text = batch[sentence.text]
            mentions[sentence.text] += self._mentions(text, sentence.words, tags, probabilities)
        return [self._with_lexicon_drugs(text, own) for text, own in zip(batch, mentions, strict=True)]

    def _tag(self, sentence_words: Sequence[Sequence[str]]) -> list[tuple[list[int], list[float]]]:
        """For each sentence the best tag of each word, never X, and its probability."""
        split = self.encoder.split(sentence_words)
        windows = [self.encoder.windows(s) for s in split]
        hidden = iter(self.encoder.encode_pieces([w for ws in windows for w in ws]))
        return [self._best_tags(s, [next(hidden) for _ in ws]) for s, ws in zip(split, windows, strict=True)]

    def _best_tags(self, sentence: WordPieces, hidden: list[Tensor]) -> tuple[list[int], list[float]]:
        """From the hidden state of each word's first piece; words without pieces get O."""
        n = len(sentence.first)
        tags, probabilities = [0] * n, [1.0] * n
        kept = [w for w in range(n) if sentence.count[w]]
        if not kept:
            return tags, probabilities
        first = torch.cat(hidden)[[sentence.first[w] for w in kept]]
        logits = self.head(first, torch.zeros(len(kept), device=first.device))
        logits[:, self.tags.index(CONTINUATION)] = -torch.inf
        top = logits.softmax(-1).max(-1)
        for w, tag, probability in zip(kept, top.indices.tolist(), top.values.tolist(), strict=True):
            tags[w], probabilities[w] = tag, probability
        return tags, probabilities

    def _mentions(
        self, text: str, spans: list[Span], tags: list[int], probabilities: list[float]
    ) -> list[Mention]:
        mentions = []
        for label, start, end in spans_of([self.tags[t] for t in tags], self.gaps_repaired):
            first, last = spans[start].start, spans[end - 1].end
            score = round(sum(probabilities[start:end]) / (end - start), 4)
            surface = text[first:last]
            generic = self.lexicon.generic(surface) if self.lexicon and label == DRUG else None
            mentions.append(Mention(first, last, surface, label, score, generic))
        return mentions

    def _with_lexicon_drugs(self, text: str, mentions: list[Mention]) -> list[Mention]:
        """The mentions and the lexicon's drugs that overlap no tagged drug, with score 1."""
        if self.lexicon is None:
            return mentions
        tagged = [m for m in mentions if m.label == DRUG]
        for span, generic in self.lexicon.find(text):
            if not any(m.start < span.end and span.start < m.end for m in tagged):
                mentions.append(
                    Mention(span.start, span.end, text[span.start : span.end], DRUG, 1.0, generic)
                )
        return sorted(mentions, key=lambda m: (m.start, m.end, m.label))
