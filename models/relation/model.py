"""Drugs, effects and which drug caused which effect, by nearest neighbours among training words and training
pairs: inference of CLDR and CLNER.

The words of a sentence are tagged by the votes of their nearest training words in the entity space. Unlike in
the paper, the most probable tag sequence is chosen, not the best tag of each word. A drug and an effect,
represented by the last words of their mentions, are related when most of the nearest training pairs in the
relation space are, of which those count that are similar enough; their share is the score. The encoder of the
relation space reads only sentences that have a drug and an effect.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from models.drugs import RELEASE_FILE, DrugLexicon
from models.drugs.classes import DrugClasses, class_named
from models.encoder.faiss_index import CosineIndex
from models.encoder.model import Encoder
from models.ner.decoding import spans_of, tags_of
from models.ner.mention_rules import end_of
from models.relation.pairs import LABELS, SentenceMention, pairs_of
from models.relation.sentences import Sentence, apart, end_of_number, is_event, split
from models.relation.spaces import EmbeddingSpaces, EncodedSentence
from models.relation.support_set import Floats, NamedPair, Numbers, SupportSet, decode_tags, votes
from models.relation.voting import Voting, voting_of
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.supplement import Decided
from models.tables import read_tsv
from models.types import ADE, DRUG, Expansion, Mention, Neighbour, Relation, Span, TaggedText


class RelationModel:
    """Encoders, projections and support set, which belong together and come from one release."""

    task = "relation"

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        support: SupportSet,
        voting: Voting,
        *,
        lexicon: DrugLexicon | None = None,
        device: str = "cpu",
    ) -> None:
        """`lexicon` gives the generic names of drugs; `device` is that of the FAISS indexes."""
        self.spaces = spaces
        self.support = support
        self.voting = voting
        self.tags = tags_of(LABELS)
        self.lexicon = lexicon
        self.drug_classes: DrugClasses | None = None
        self.decided: Decided | None = None
        self._word_index = CosineIndex(support.words, device)
        self._pair_index = CosineIndex(support.pairs, device)

    @property
    def encoder(self) -> Encoder:
        """The encoder of both spaces."""
        return self.spaces.encoder

    @classmethod
    def load(
        cls, release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> RelationModel:
        """Raises ReleaseError when the tensors do not fit each other or the table of pairs."""
        stored = read_tensors(release.file("support.safetensors"))
        tensors = {name: tensor.float().numpy() for name, tensor in stored.items()}
        spaces = EmbeddingSpaces.load(
            release, tensors["projection"], tensors.get("pair_projection"), device=device, dtype=dtype
        )
        support = SupportSet.from_tensors(tensors, _named(release.file("pairs.tsv")))
        if not _fits(spaces, support):
            raise ReleaseError(
                f"{release.version}: the support set does not fit the encoder or the table of pairs"
            )
        return cls(
            spaces,
            support,
            voting_of(release),
            lexicon=DrugLexicon.load(release.file(RELEASE_FILE)),
            device=device,
        )

    def with_classes(self, drug_classes: DrugClasses) -> RelationModel:
        """The same model that reads these names of drug classes as if they were a drug."""
        model = copy.copy(self)
        model.drug_classes = drug_classes
        return model

    def with_supplement(self, release: Release) -> RelationModel:
        """The same model with the decided pairs of a supplement; raises ReleaseError."""
        model = copy.copy(self)
        model.decided = Decided.load(release, self.support.pairs.shape[1])
        return model

    @staticmethod
    def comparable(answers: Sequence[dict[str, Any]]) -> list[Any]:
        """The part of canary answers that must be the same in another number format: mentions and relations.

        Scores are left out: votes change in steps of 1/k, and neighbours at nearly equal distance change
        places with the rounding.
        """
        return [
            {
                "mentions": [[m["start"], m["end"], m["label"]] for m in answer["mentions"]],
                "relations": [[r["head"], r["tail"]] for r in answer["relations"]],
            }
            for answer in answers
        ]

    def predict(
        self, batch: Sequence[str], expansions: Sequence[Sequence[Expansion]] | None = None
    ) -> list[TaggedText]:
        """Mentions and relations of each text; both ends of a relation are in one sentence.

        With the `expansions` of its acronyms a text is read with the long forms that name adverse events or
        drugs in their places; what is found there has the offsets of the acronyms.
        """
        read = split(batch, expansions)
        encoded = self._encode(read)
        tagged = self._tag(batch, read, encoded)
        mentions: list[list[Mention]] = [[] for _ in batch]
        for sentence, in_sentence in zip(read, tagged, strict=True):
            mentions[sentence.report] += [m.mention for m in in_sentence]
        relations = self._relations(batch, read, encoded, tagged)
        return [TaggedText(tuple(m), tuple(r)) for m, r in zip(mentions, relations, strict=True)]

    def relate(self, texts: Sequence[str], mentions: Sequence[Sequence[Mention]]) -> list[list[Relation]]:
        """The relations between given mentions, which they refer to by position in each text's list."""
        read = split(texts)
        given = [
            [
                SentenceMention(
                    self._with_generic(mention), position, _last_word(s.words, mention.end), mention.text
                )
                for position, mention in enumerate(mentions[s.report])
                if s.words[0].start < mention.end <= s.words[-1].end
            ]
            for s in read
        ]
        return self._relations(texts, read, self._encode(read), given)

    def pair_vectors(
        self,
        texts: Sequence[str],
        pairs: Sequence[tuple[Mention, Mention]],
        expansions: Sequence[Sequence[Expansion]] | None = None,
    ) -> list[Floats | None]:
        """The vector in the relation space of a pair (drug, effect) of each text, which is read as `predict`
        reads it; None where the two are not in one sentence.
        """
        read = [
            s
            for s in split(texts, expansions)
            if all(s.words[0].start < m.end <= s.words[-1].end for m in pairs[s.report])
        ]
        vectors: list[Floats | None] = [None] * len(texts)
        for s, words in zip(read, self.spaces.relation_vectors(self._encode(read)), strict=True):
            ends = [_last_word(s.words, m.end) for m in pairs[s.report]]
            vectors[s.report] = np.concatenate([words[i] for i in ends])
        return vectors

    def _with_generic(self, mention: Mention) -> Mention:
        if self.lexicon is None or mention.label != DRUG or mention.generic is not None:
            return mention
        return replace(mention, generic=self.lexicon.generic(mention.text))

    def tag_words(self, vectors: Floats, lengths: Sequence[int]) -> tuple[Numbers, Floats]:
        """Each word's tag and that tag's share of the votes of its k nearest training words, both (words,).

        `vectors`: (words, dimension) of the entity space, sentence after sentence; `lengths`: the number of
        words of each sentence.
        """
        _, rows = self._word_index.search(vectors, self.voting.k_words)
        shares = votes(self.support.tags[rows], len(self.tags))
        tags = decode_tags(shares, lengths, self.support.transitions)
        return tags, shares[np.arange(len(tags)), tags]

    def vote_on_pairs(self, pairs: Sequence[Floats]) -> list[tuple[float, tuple[Neighbour, ...]]]:
        """For each pair [drug ; effect] of the relation space the share of its k nearest training pairs that
        are related and at least `Voting.least_cosine` similar, and all k neighbours, nearest first. A decided
        pair that is near enough stands before them and decides alone.
        """
        if not pairs:
            return []
        vectors = np.stack(pairs)
        cosines, rows = self._pair_index.search(vectors, self.voting.k_pairs)
        decided: list[Neighbour | None] = [None] * len(vectors)
        if self.decided is not None:
            decided = self.decided.deciding(vectors, cosines[:, 0])
        results = []
        for own_cosines, own_rows, decision in zip(cosines, rows, decided, strict=True):
            neighbours = tuple(
                self._neighbour(row, cosine, is_quoted=place < QUOTED)
                for place, (cosine, row) in enumerate(
                    zip(own_cosines.tolist(), own_rows.tolist(), strict=True)
                )
            )
            counted = self.support.related[own_rows] & (own_cosines >= self.voting.least_cosine)
            if decision is None:
                results.append((float(counted.mean()), neighbours))
            else:
                results.append((float(bool(decision.related)), (decision, *neighbours)))
        return results

    def _neighbour(self, row: int, cosine: float, *, is_quoted: bool) -> Neighbour:
        pair, related = self.support.named[row], bool(self.support.related[row])
        source = pair.source if is_quoted else ""
        return Neighbour(pair.sentence, round(1 - cosine, 4), pair.drug, pair.effect, related, source)

    def _encode(self, read: Sequence[Sentence]) -> list[EncodedSentence]:
        words = [s.read for s in read]
        if self.drug_classes is not None:
            words = [list(own) for own in words]
            for own in words:
                for last in self.drug_classes.spans(own):
                    own[last] = _ANY_DRUG
        return self.spaces.encode(words)

    def _tag(
        self, batch: Sequence[str], read: Sequence[Sentence], encoded: Sequence[EncodedSentence]
    ) -> list[list[SentenceMention]]:
        """The mentions of each sentence."""
        if not read:
            return []
        vectors = np.concatenate(self.spaces.entity_vectors(encoded))
        tags, shares = self.tag_words(vectors, [len(s.words) for s in read])
        tagged, start, n_mentions = [], 0, [0] * len(batch)
        for sentence in read:
            rows = slice(start, start + len(sentence.words))
            start = rows.stop
            names = [self.tags[t] for t in tags[rows]]
            mentions = self._mentions(batch[sentence.report], sentence, names, shares[rows])
            first = n_mentions[sentence.report]
            n_mentions[sentence.report] += len(mentions)
            tagged.append([m._replace(position=first + i) for i, m in enumerate(mentions)])
        return tagged

    def _mentions(
        self, text: str, sentence: Sentence, names: list[str], shares: Floats
    ) -> list[SentenceMention]:
        """The mentions of a sentence, with positions among themselves; none is an effect that is named as the
        cause of another ("sepsis-induced").
        """
        spans, classes = sentence.words, dict[int, int]()
        if self.drug_classes is not None:
            classes = self.drug_classes.spans(sentence.read)
        mentions: list[SentenceMention] = []
        for tagged_label, first, tagged_after in spans_of(names):
            label = tagged_label
            after = end_of(sentence.read, first, tagged_after)
            if after == first:
                continue
            if label == ADE and _AS_CAUSE.match(text, spans[after - 1].end - 1):
                continue
            start, end = spans[first].start, end_of_number(text, spans[after - 1].end)
            if label == DRUG:
                start = min(start, spans[classes.get(after - 1, first)].start)
            surface, name = text[start:end], " ".join(sentence.read[first:after])
            if label == ADE and class_named(surface):
                label = DRUG  # "sulfa" in a list of allergies
            generic = None
            if self.lexicon and label == DRUG:
                generic = self.lexicon.generic(surface) or self.lexicon.generic(name)
                # "Vitiligo" in a list was taken for a drug, and for the suspect of the rest of the list.
                is_drug = generic or not (is_event(surface) and is_event(name))
                label = DRUG if is_drug or "vaccin" in text[end : end + 40].lower() else ADE
            score = round(float(shares[first:after].mean()), 4)
            mention = Mention(start, end, surface, label, score, generic)
            mentions.append(SentenceMention(mention, len(mentions), after - 1, name))
        return apart(mentions)

    def _relations(
        self,
        texts: Sequence[str],
        read: Sequence[Sentence],
        encoded: Sequence[EncodedSentence],
        tagged: Sequence[Sequence[SentenceMention]],
    ) -> list[list[Relation]]:
        """The relations of each text among the drugs and effects that share a sentence, see `pairs_of`."""
        kept = [i for i, own in enumerate(tagged) if {m.mention.label for m in own} >= set(LABELS)]
        pairs = pairs_of(texts, [read[i].report for i in kept], [tagged[i] for i in kept])
        compared = [pair for pair in pairs if not pair.is_stated]
        asked = sorted({pair.sentence for pair in compared})
        words_of = dict(
            zip(asked, self.spaces.relation_vectors([encoded[kept[i]] for i in asked]), strict=True)
        )
        voted = iter(
            self.vote_on_pairs(
                [
                    np.concatenate([words_of[p.sentence][w] for w in (p.drug_word, p.effect_word)])
                    for p in compared
                ]
            )
        )
        relations: list[list[Relation]] = [[] for _ in texts]
        for pair in pairs:
            share, neighbours = (1.0, ()) if pair.is_stated else next(voted)
            if share > self.voting.threshold or pair.is_stated:
                relations[pair.report].append(Relation(pair.head, pair.tail, round(share, 4), neighbours))
        return relations


#: Neighbours of a pair whose sources a record states: of all of them a list of effects would be too long.
QUOTED = 3
#: Is read in the place of the last word of a class.
_ANY_DRUG = "methotrexate"
#: From the last character of a name on. Of 578 such names in training sentences of the ADE corpus 577 are
#: drugs.
_AS_CAUSE = re.compile(r".?\s?-\s?(?:induced|associated|related)\b")


def _last_word(spans: Sequence[Span], end: int) -> int:
    return max(i for i, s in enumerate(spans) if s.start < end)


def _fits(spaces: EmbeddingSpaces, support: SupportSet) -> bool:
    return spaces.fits() and support.fits(
        spaces.projection.shape[1], spaces.pair_projection.shape[1], len(tags_of(LABELS))
    )


def _named(path: Path) -> list[NamedPair]:
    rows = read_tsv(path, ("sentence", "drug", "effect", "related"))
    # Without the last column in releases of earlier versions.
    return [NamedPair(sentence, drug, effect, *rest[:1]) for sentence, drug, effect, _, *rest in rows]
