"""CONORM-NER: mentions of drugs, adverse events, indications and withdrawal symptoms in a text (CONORM,
section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from models.drugs import DrugLexicon
from models.encoder.model import Encoder, WordPieces, encoder_of
from models.releases.manifest import Release
from models.releases.tensors import read_tensors
from models.text import sentences, words
from models.types import DRUG, Mention, Span

OUTSIDE = "O"
CONTINUATION = "X"


def tags_of(labels: Sequence[str]) -> list[str]:
    """O, X, then B and I of each label."""
    return [OUTSIDE, CONTINUATION, *(f"{prefix}-{label}" for label in labels for prefix in "BI")]


class Head(nn.Module):
    """Dropout, the sub-word flag beside the hidden state, a linear layer to the tags."""

    def __init__(self, dimension: int, n_tags: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(dimension + 1, n_tags)

    def forward(self, hidden: Tensor, flag: Tensor) -> Tensor:
        """(..., dimension) and (...) to (..., tags)."""
        logits: Tensor = self.linear(torch.cat([self.dropout(hidden), flag.unsqueeze(-1)], dim=-1))
        return logits


class _Sentence(NamedTuple):
    text: int
    """position of the report in the batch"""
    words: list[Span]


class NerModel:
    """Tags BIOX sentence by sentence, drops X, repairs gaps, and adds the lexicon's drugs where it saw
    none.
    """

    task = "ner"

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        labels: Sequence[str],
        lexicon: DrugLexicon | None,
        repaired: bool = True,
    ) -> None:
        self.encoder = encoder
        self.head = head.eval()
        self.tags = tags_of(labels)
        self.lexicon = lexicon
        self.repaired = repaired

    @classmethod
    def load(cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> NerModel:
        """Raises ReleaseError when the base is another one than the release was trained on."""
        encoder = encoder_of(release, device=device, dtype=dtype)
        configuration = release.manifest.configuration
        labels = configuration["labels"]
        head = Head(encoder.dimension, len(tags_of(labels)))
        head.load_state_dict(
            {k: v.float() for k, v in read_tensors(release.file("head.safetensors")).items()}
        )
        lexicon = DrugLexicon.load(release.file("drugs.tsv"))
        return cls(encoder, head.to(device), labels, lexicon, configuration.get("repair", True))

    @torch.inference_mode()
    def predict(self, batch: Sequence[str]) -> list[list[Mention]]:
        """Mentions of each text in text order; offsets are code points of that text."""
        split = [_Sentence(i, words(text, s)) for i, text in enumerate(batch) for s in sentences(text)]
        found: list[list[Mention]] = [[] for _ in batch]
        surfaces = [[batch[s.text][w.start : w.end] for w in s.words] for s in split]
        for sentence, (tags, probabilities) in zip(split, self._tag(surfaces), strict=True):
            found[sentence.text] += self._mentions(batch[sentence.text], sentence.words, tags, probabilities)
        return [self._with_drugs(text, mentions) for text, mentions in zip(batch, found, strict=True)]

    def _tag(self, surfaces: Sequence[Sequence[str]]) -> list[tuple[list[int], list[float]]]:
        """Best tag (never X) and its probability for each word."""
        split = self.encoder.split(surfaces)
        windows = [self.encoder.windows(s) for s in split]
        hidden = iter(self.encoder.encode_pieces([w for ws in windows for w in ws]))
        return [self._decode(s, [next(hidden) for _ in ws]) for s, ws in zip(split, windows, strict=True)]

    def _decode(self, sentence: WordPieces, hidden: list[Tensor]) -> tuple[list[int], list[float]]:
        n = len(sentence.first)
        tags, best = [0] * n, [1.0] * n
        kept = [w for w in range(n) if sentence.count[w]]
        if not kept:
            return tags, best
        first = torch.cat(hidden)[[sentence.first[w] for w in kept]]
        logits = self.head(first, torch.zeros(len(kept), device=first.device))
        logits[:, self.tags.index(CONTINUATION)] = -torch.inf
        top = logits.softmax(-1).max(-1)
        for w, tag, probability in zip(kept, top.indices.tolist(), top.values.tolist(), strict=True):
            tags[w], best[w] = tag, probability
        return tags, best

    def _mentions(
        self, text: str, spans: list[Span], tags: list[int], probabilities: list[float]
    ) -> list[Mention]:
        mentions = []
        for label, start, end in spans_of([self.tags[t] for t in tags], self.repaired):
            first, last = spans[start].start, spans[end - 1].end
            score = round(sum(probabilities[start:end]) / (end - start), 4)
            surface = text[first:last]
            generic = self.lexicon.generic(surface) if self.lexicon and label == DRUG else None
            mentions.append(Mention(first, last, surface, label, score, generic))
        return mentions

    def _with_drugs(self, text: str, mentions: list[Mention]) -> list[Mention]:
        """Adds the lexicon's drugs that overlap no tagged drug."""
        if self.lexicon is None:
            return mentions
        tagged = [m for m in mentions if m.label == DRUG]
        for span, generic in self.lexicon.find(text):
            if not any(m.start < span.end and span.start < m.end for m in tagged):
                mentions.append(
                    Mention(span.start, span.end, text[span.start : span.end], DRUG, 1.0, generic)
                )
        return sorted(mentions, key=lambda m: (m.start, m.end, m.label))


def repair(tags: Sequence[str]) -> list[str]:
    """An O between two I of one label becomes I: B I I O I -> B I I I I (CONORM, section 3.1, second
    step).
    """
    out = list(tags)
    for i in range(1, len(tags) - 1):
        if out[i] == OUTSIDE and out[i - 1].startswith("I-") and tags[i + 1] == out[i - 1]:
            out[i] = out[i - 1]
    return out


def spans_of(tags: Sequence[str], repaired: bool = True) -> list[tuple[str, int, int]]:
    """(label, first word, word after the last) of each run after the repair; an I that follows no run of its
    label opens one.
    """
    runs: list[tuple[str, int, int]] = []
    for i, tag in enumerate(repair(tags) if repaired else tags):
        if tag in (OUTSIDE, CONTINUATION):
            continue
        prefix, label = tag.split("-", 1)
        if prefix == "I" and runs and runs[-1][0] == label and runs[-1][2] == i:
            runs[-1] = (label, runs[-1][1], i + 1)
        else:
            runs.append((label, i, i + 1))
    return runs
