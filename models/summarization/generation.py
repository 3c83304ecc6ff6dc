"""The best few summaries of each text, by the pointer decoder or by an encoder-decoder of the hub."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from models.encoder.model import Encoder, padded
from models.summarization.beam_search import Search, search
from models.summarization.pointer_decoder import TINY, Pieces, Pointer, Source

#: Pieces of the questions that are looked at in one search, times beams.
BUDGET = 32768
#: A search looks at questions of this many pieces, or of a multiple of it, together: each is padded by its
#: length alone, and a wide batch costs hardly more a step than a narrow one.
WIDTH = 64
#: One in so many of the pieces that are read of a long text are its last ones.
TAIL = 4


class Written(NamedTuple):
    """A summary and the geometric mean of its pieces' probabilities."""

    text: str
    score: float


class Writer(Protocol):
    def write(self, texts: Sequence[str]) -> list[list[Written]]:
        """Summaries of each text, best first, none where there is nothing to say; nothing is drawn at
        random.
        """


class PointerWriter:
    """Encoder and pointer decoder; texts of one padded length share a search, so that none is padded by its
    company.
    """

    def __init__(self, encoder: Encoder, pointer: Pointer, pieces: Pieces, settings: Search) -> None:
        self.encoder, self.pointer, self.pieces, self.settings = encoder, pointer, pieces, settings

    @torch.inference_mode()
    def write(self, texts: Sequence[str]) -> list[list[Written]]:
        out: list[list[Written]] = [[] for _ in texts]
        sources = source_pieces(self.encoder, texts)
        for rows in self._batches([len(s) + 2 for s in sources]):
            hidden = self._read([sources[i] for i in rows])
            source = source_of(self.encoder, self.pieces, [sources[i] for i in rows], hidden)
            for i, found in zip(rows, self._search(source, [sources[i] for i in rows]), strict=True):
                for numbers, score in found:
                    pieces = self.encoder.tokenizer.convert_ids_to_tokens(numbers)
                    out[i].append(Written(surface(pieces, texts[i]), score))
        return out

    @torch.inference_mode()
    def scores(self, texts: Sequence[str], summaries: Sequence[Sequence[str]]) -> list[list[float]]:
        """The geometric mean of the pieces' probabilities of given summaries of each text."""
        out = []
        for text, wanted in zip(texts, summaries, strict=True):
            out.append(self._scores(source_pieces(self.encoder, [text])[0], wanted) if wanted else [])
        return out

    def _scores(self, pieces: Sequence[int], wanted: Sequence[str]) -> list[float]:
        rows = [s[: self.settings.longest] for s in source_pieces(self.encoder, wanted)]
        source = source_of(self.encoder, self.pieces, [pieces], self.encoder.forward([pieces]))
        steps = max(len(r) for r in rows) + 1
        said = torch.full((len(rows), steps), self.pieces.end)
        targets = torch.full((len(rows), steps), -1)
        for i, row in enumerate(rows):
            said[i, : len(row) + 1] = torch.tensor([self.pieces.begin, *row])
            found = self.pieces.targets(row, special(self.encoder, pieces))
            targets[i, : len(row) + 1] = torch.tensor(found)
        device = source.mask.device
        several = source.rows(torch.zeros(len(rows), dtype=torch.long, device=device))
        probabilities = self.pointer(several, said.to(device)).cpu()
        right = probabilities.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
        # What the decoder can neither say nor copy is as unlikely as anything can be.
        logs = torch.where(targets >= 0, right, 0.0).clamp(min=TINY).log()
        lengths = torch.tensor([len(r) + 1 for r in rows])
        inside = torch.arange(steps) < lengths.unsqueeze(1)
        means = (logs * inside).sum(1) / lengths
        return [round(m, 4) for m in means.exp().tolist()]

    def _search(
        self, source: Source, sources: Sequence[Sequence[int]]
    ) -> list[list[tuple[list[int], float]]]:
        k, texts = self.settings.beams, len(sources)
        cache = self.pointer.start(source)
        rows = [special(self.encoder, s) for s in sources]
        last_pieces = torch.tensor([[*r, *[0] * (source.mask.shape[1] - len(r))] for r in rows])
        generated = torch.tensor(self.pieces.generated)
        table = torch.cat([generated.expand(texts, -1), last_pieces], 1).repeat_interleave(k, 0)

        def step(numbers: Tensor, keep: Tensor) -> Tensor:
            nonlocal table
            if cache.own:
                # Hypotheses of one text have the same row; rows change only when a text leaves.
                table = table if len(keep) == len(table) else table.index_select(0, keep)
                cache.rows(keep.to(source.mask.device))
                pieces = table.gather(1, numbers.unsqueeze(1)).squeeze(1)
            else:
                pieces = torch.full_like(numbers, self.pieces.begin)
            return self.pointer.step(cache, pieces.to(source.mask.device)).clamp(min=0).log()

        found = search(step, texts, self.pieces.begin, 0, self.settings)
        return [
            [
                (
                    [self.pieces.piece(n, rows[t]) for n in h.numbers],
                    round(math.exp(h.log_probability / (len(h.numbers) + 1)), 4),
                )
                for h in hypotheses
            ]
            for t, hypotheses in enumerate(found)
        ]

    def _read(self, sources: Sequence[Sequence[int]]) -> Tensor:
        """(texts, width, dimension) of texts of one width: each is read at its own padded length."""
        lengths = [len(s) + 2 for s in sources]
        hidden = torch.zeros(len(sources), padded(lengths[0], WIDTH), self.encoder.dimension)
        groups: dict[int, list[int]] = {}
        for i, length in enumerate(lengths):
            groups.setdefault(padded(length), []).append(i)
        for members in groups.values():
            found = self.encoder.forward([sources[i] for i in members])
            hidden = hidden.to(found)
            hidden[members, : found.shape[1]] = found
        return hidden

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        groups: dict[int, list[int]] = {}
        for i, length in enumerate(lengths):
            groups.setdefault(padded(length, WIDTH), []).append(i)
        for width, members in sorted(groups.items()):
            size = max(1, BUDGET // (width * self.settings.beams))
            for start in range(0, len(members), size):
                yield members[start : start + size]


class HubWriter:
    """Any encoder-decoder of `transformers`, such as BART or T5."""

    def __init__(self, model: Any, tokenizer: Any, settings: Search, max_pieces: int) -> None:
        self.model, self.tokenizer, self.settings, self.max_pieces = model, tokenizer, settings, max_pieces

    @torch.inference_mode()
    def write(self, texts: Sequence[str]) -> list[list[Written]]:
        out: list[list[Written]] = []
        for text in texts:
            # One by one: a text's padding, and so its bits, must not depend on its company.
            read = hub_source(self.tokenizer, [text or " "], self.max_pieces)
            out.append(self._written(read.to(self.model.device)))
        return out

    def _written(self, read: Any) -> list[Written]:
        s = self.settings
        found = self.model.generate(
            input_ids=read["input_ids"],
            attention_mask=read["attention_mask"],
            num_beams=s.beams,
            num_return_sequences=s.beams,
            do_sample=False,
            length_penalty=s.length_penalty,
            no_repeat_ngram_size=s.no_repeat,
            min_new_tokens=s.shortest,
            max_new_tokens=s.longest,
            return_dict_in_generate=True,
            output_scores=True,
        )
        texts = self.tokenizer.batch_decode(found.sequences, skip_special_tokens=True)
        indices = found.beam_indices if s.beams > 1 else None
        logs = self.model.compute_transition_scores(
            found.sequences, found.scores, indices, normalize_logits=s.beams == 1
        )
        # What stands behind the end of a shorter hypothesis has a score of 0, or none at all.
        logs = torch.where(torch.isfinite(logs), logs, 0.0)
        means = (logs.sum(1) / (logs != 0).sum(1).clamp(min=1)).exp().tolist()
        return [Written(" ".join(t.split()), round(m, 4)) for t, m in zip(texts, means, strict=True)]


def source_pieces(encoder: Encoder, texts: Sequence[str]) -> list[list[int]]:
    """At most `max_pieces` - 2 pieces of each text; of a longer one the first and, where the question often
    stands, the last.
    """
    if not texts:
        return []
    read = encoder.tokenizer(
        list(texts), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    return [_both_ends(ids, encoder.max_pieces - 2) for ids in read["input_ids"]]


def hub_source(tokenizer: Any, texts: Sequence[str], max_pieces: int) -> Any:
    """Padded pieces and mask of texts for an encoder-decoder of `transformers`; longer texts are cut as
    `source_pieces` cuts them.
    """
    read = tokenizer(list(texts), verbose=False)["input_ids"]
    return tokenizer.pad({"input_ids": [_both_ends(ids, max_pieces) for ids in read]}, return_tensors="pt")


def _both_ends(ids: Sequence[int], limit: int) -> list[int]:
    tail = limit // TAIL
    return list(ids) if len(ids) <= limit else [*ids[: limit - tail], *ids[len(ids) - tail :]]


def special(encoder: Encoder, pieces: Sequence[int]) -> list[int]:
    """A row as the encoder reads it, with the pieces that open and close it."""
    tokenizer = encoder.tokenizer
    return [tokenizer.cls_token_id, *pieces, tokenizer.sep_token_id]


def source_of(encoder: Encoder, pieces: Pieces, sources: Sequence[Sequence[int]], hidden: Tensor) -> Source:
    """The encoder's states (texts, padded pieces, dimension) with what may be copied of each text."""
    whole = [special(encoder, source) for source in sources]
    texts, width = hidden.shape[:2]
    mask, inside = (torch.zeros(texts, width, dtype=torch.bool) for _ in range(2))
    copied, before = torch.full((texts, width), -1), torch.full((texts, 2, width), -1)
    for row, own in enumerate(whole):
        mask[row, : len(own)] = True
        copied[row, : len(own)] = torch.tensor(pieces.copied(own))
        before[row, :, : len(own)] = torch.tensor(pieces.before(own))
        inside[row, : len(own)] = torch.tensor(pieces.inside(own))
    device = hidden.device
    return Source(hidden, *(t.to(device) for t in (mask, copied, before, inside)))


def pieces_of(tokenizer: Any, generated: Sequence[int]) -> Pieces:
    """The numbers of a decoder over a tokenizer of WordPiece."""
    inside = {number for token, number in tokenizer.get_vocab().items() if token.startswith("##")}
    ends = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.unk_token_id)
    return Pieces(generated, *ends, inside)


def surface(pieces: Sequence[str], source: str) -> str:
    """A text of word pieces, written as the source writes its words and with a capital at its beginning."""
    words: list[str] = []
    for piece in pieces:
        if piece.startswith("##") and words:
            words[-1] += piece[2:]
        else:
            words.append(piece)
    text = " ".join(words)
    text = re.sub(r" ([?.,;:!%)\]])", r"\1", re.sub(r"([(\[]) ", r"\1", text))
    text = re.sub(r"(?<=[\w%]) ?(['\u2019/-]) ?(?=\w)", r"\1", text)
    text = re.sub(r" (\(e?s\))|(?<=\d)(\.) (?=\d)", r"\1\2", text)
    known = {"i": "I"} | _spellings(source)
    text = re.sub(r"\w+", lambda m: known.get(m.group(), m.group()), text)
    return text[:1].upper() + text[1:]


def _spellings(source: str) -> dict[str, str]:
    """Word as the tokenizer reads it to the way in which the source writes it, where that has capitals inside
    a sentence; nothing of a text that is all capitals.
    """
    found: dict[str, str] = {}
    plain: set[str] = set()
    every = list(re.finditer(r"\w+", source))
    shouted = sum(m.group().isupper() for m in every) > len(every) / 2
    for m in every:
        word = m.group()
        read = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if not unicodedata.combining(c))
        if word == read:
            plain.add(word)
        elif not shouted and (word != word.capitalize() or source[: m.start()].rstrip()[-1:].isalnum()):
            found.setdefault(read, word)
    return {read: word for read, word in found.items() if read not in plain}
