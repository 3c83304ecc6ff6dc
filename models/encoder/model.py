"""A transformer encoder over word pieces or whole texts, batch-invariant.

For inference a BERT or an MPNet is packed (packed/bert.py). Models of transformers get texts grouped by
padded length (a multiple of 8 pieces), and only texts of one group share a batch, so that padding depends on
the text alone.
Vectors of a text in two batches are equal to 1e-5. They have the same bits where the processor computes each
row of a product independently of the number of rows: in 32 bits by MKL's strict mode (see
models/__init__.py), on Intel for any product, on AMD for products of four rows or more, as all of the shipped
encoders are (at least eight rows); in 16 bits by products over blocks (number_formats.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from models.encoder.base_files import resolve_base
from models.encoder.packed.bert import PackedBert
from models.encoder.packed.weights import load_packed
from models.encoder.tokenizer import WordPieceTokenizer, load_wordpiece
from models.encoder.weights import ADAPTER, WEIGHTS, check_base, load_model, load_tokenizer
from models.encoder.word_pieces import PlacedPieces, WordPieces, joined, word_pieces
from models.releases.manifest import Release
from models.text import words

PAD_TO = 8
#: Pieces in one forward pass; larger batches are no faster on a CPU and need more memory.
TOKEN_BUDGET = 4096


class Encoder:
    """Vectors from a transformer encoder; several threads may use one at once.

    `dimension` is the size of a vector, `max_pieces` the length of a window, special tokens included.
    """

    def __init__(self, model: Any, tokenizer: Any, max_pieces: int) -> None:
        """Raises ValueError for a window of less than 8 pieces or a tokenizer without special tokens."""
        self.model = model
        self.tokenizer = tokenizer
        if max_pieces < PAD_TO:
            raise ValueError(f"max_pieces is {max_pieces}, at least {PAD_TO} are needed")
        self.max_pieces = max_pieces
        self.dimension = int(model.config.hidden_size)
        self._cls = _first_id(tokenizer.cls_token_id, tokenizer.bos_token_id)
        self._sep = _first_id(tokenizer.sep_token_id, tokenizer.eos_token_id)

    @classmethod
    def load(  # noqa: PLR0913  keyword-only, one for each part of a release
        cls,
        base: str,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        max_pieces: int = 128,
        adapter: Path | None = None,
        weights: Path | None = None,
    ) -> Encoder:
        """An encoder of transformers with the weights of `base`, or with those that a release adds; see
        `models.encoder.weights.load_model` for the files, the shared weights and the errors.
        """
        model = load_model(base, device, dtype, adapter=adapter, weights=weights)
        return cls(model, load_tokenizer(base), max_pieces)

    @classmethod
    def for_inference(cls, base: str, *, max_pieces: int = 128, **options: Any) -> Encoder:
        """An encoder as by `load` with the same options, with a packed model where the base is a BERT or
        MPNet in a folder: faster, and neither trainable nor dependent on transformers.
        """
        tokenizer = load_wordpiece(Path(resolve_base(base)))
        model = load_packed(base, **options) if tokenizer is not None else None
        if model is None:
            return cls.load(base, max_pieces=max_pieces, **options)
        return cls(model, tokenizer, max_pieces)

    def split(self, sentences: Sequence[Sequence[str]]) -> list[WordPieces]:
        """The pieces of each sentence, given as its words; nothing is truncated."""
        if not sentences:
            return []
        if not self.tokenizer.is_fast or isinstance(self.tokenizer, WordPieceTokenizer):
            return self._split_words(sentences)
        # The fast tokenizer infers the type of its input from the first sentence, which must not be empty.
        encoded = self.tokenizer(
            [list(s) or [""] for s in sentences],
            is_split_into_words=True,
            add_special_tokens=False,
            return_attention_mask=False,
            verbose=False,
        )
        rows = zip(encoded["input_ids"], sentences, strict=True)
        return [word_pieces(encoded.word_ids(i), ids, len(s)) for i, (ids, s) in enumerate(rows)]

    def _split_words(self, sentences: Sequence[Sequence[str]]) -> list[WordPieces]:
        """`split` by a tokenizer that is given each word alone, because it keeps the pieces of words or does
        not map pieces to words.
        """
        unique = {w for s in sentences for w in s}
        if isinstance(self.tokenizer, WordPieceTokenizer):
            pieces = self.tokenizer.of_words(unique)
        else:
            options = {"add_special_tokens": False, "verbose": False}
            pieces = {w: self.tokenizer(w, **options)["input_ids"] for w in unique}
        return [joined([pieces[word] for word in sentence]) for sentence in sentences]

    def pieces_at(self, texts: Sequence[str]) -> list[PlacedPieces]:
        """The pieces of each text with their places; by a slow tokenizer those of its words."""
        if not texts:
            return []
        if self.tokenizer.is_fast:
            encoded = self.tokenizer(
                list(texts),
                add_special_tokens=False,
                return_attention_mask=False,
                return_offsets_mapping=True,
                verbose=False,
            )
            rows = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
            return [PlacedPieces(ids, places) for ids, places in rows]
        spans = [words(text) for text in texts]
        split = self.split([[t[s.start : s.end] for s in own] for t, own in zip(texts, spans, strict=True)])
        return [
            PlacedPieces(
                s.pieces, [(w.start, w.end) for w, n in zip(own, s.count, strict=True) for _ in range(n)]
            )
            for s, own in zip(split, spans, strict=True)
        ]

    def encode_pieces(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
        """Hidden states (pieces, dimension), 32-bit, of each sequence of at most `max_pieces` - 2 pieces."""
        out: list[Tensor] = [torch.empty(0)] * len(sequences)
        for batch, hidden in self.hidden(sequences):
            for row, i in enumerate(batch):
                out[i] = hidden[row, 1 : len(sequences[i]) + 1]
        return out

    def hidden(self, sequences: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Tensor]]:
        """Positions of some sequences and their hidden states (sequences, pieces, dimension), 32-bit, with
        those of the special tokens, until each sequence had its turn. There may be padding.
        """
        if isinstance(self.model, PackedBert):
            yield from self.model.run(self.with_special(sequences))
            return
        for batch in self._batches([len(s) + 2 for s in sequences]):
            yield batch, self.forward([sequences[i] for i in batch])

    def with_special(self, sequences: Iterable[Sequence[int]]) -> list[list[int]]:
        """The sequences between the tokens that open and close one."""
        return [[self._cls, *s, self._sep] for s in sequences]

    def forward(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """Hidden states (batch, padded pieces, dimension), 32-bit, including those of the special tokens;
        gradients flow. Not for a packed model.
        """
        width = padded(max(len(s) for s in sequences) + 2)
        ids = torch.full((len(sequences), width), self.tokenizer.pad_token_id or 0, dtype=torch.long)
        mask = torch.zeros((len(sequences), width), dtype=torch.long)
        for row, sequence in enumerate(self.with_special(sequences)):
            ids[row, : len(sequence)] = torch.tensor(sequence)
            mask[row, : len(sequence)] = 1
        device = self.model.device
        hidden = self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state
        return cast(Tensor, hidden.float())

    def word_vectors(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """(words, dimension) of each sentence: the mean of a word's pieces, or zeros where it has none."""
        split = self.split(sentences)
        windows = [self.windows(s) for s in split]
        hidden = iter(self.encode_pieces([w for own in windows for w in own]))
        return [
            self._pool_words(s, [next(hidden) for _ in own]) for s, own in zip(split, windows, strict=True)
        ]

    def windows(self, sentence: WordPieces) -> list[list[int]]:
        """The sentence's pieces cut into windows of at most `max_pieces` - 2, at the start of a word unless
        the word alone is longer; no piece is left out.
        """
        limit = self.max_pieces - 2
        cuts = [0]
        for first, count in zip(sentence.first, sentence.count, strict=True):
            while first + count - cuts[-1] > limit:
                cuts.append(first if first > cuts[-1] else cuts[-1] + limit)
        ends = [*cuts[1:], len(sentence.pieces)]
        return [sentence.pieces[a:b] for a, b in zip(cuts, ends, strict=True) if b > a]

    def embed(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimension) unit vectors, each in the direction of `mean_pooled`."""
        return nn.functional.normalize(self.mean_pooled(texts), dim=-1)

    def mean_pooled(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimension): the mean over a text's first `max_pieces` pieces, special tokens included; a
        text that occurs twice is encoded once.
        """
        if not texts:
            return torch.zeros((0, self.dimension))
        limit = self.max_pieces - 2
        unique = list(dict.fromkeys(texts))
        encoded = self.tokenizer(unique, add_special_tokens=False, return_attention_mask=False, verbose=False)
        pooled = self.pool([ids[:limit] for ids in encoded["input_ids"]])
        place = {text: i for i, text in enumerate(unique)}
        return pooled[[place[t] for t in texts]]

    def pool(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """(sequences, dimension): the mean hidden state of each sequence of at most `max_pieces` - 2 pieces,
        special tokens included.
        """
        pooled: list[Tensor] = [torch.empty(0)] * len(sequences)
        with torch.inference_mode():
            for batch, hidden in self.hidden(sequences):
                for row, i in enumerate(batch):
                    pooled[i] = hidden[row, : len(sequences[i]) + 2].mean(0)
        return torch.stack(pooled).cpu()

    def _batches(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        """Positions of sequences of one padded length, as many as fit TOKEN_BUDGET."""
        groups: dict[int, list[int]] = {}
        for i, length in enumerate(lengths):
            groups.setdefault(padded(length), []).append(i)
        for width, members in sorted(groups.items()):
            size = max(1, TOKEN_BUDGET // width)
            for start in range(0, len(members), size):
                yield members[start : start + size]

    def _pool_words(self, sentence: WordPieces, hidden: list[Tensor]) -> Tensor:
        """(words, dimension) from the hidden states of the sentence's windows."""
        if not hidden:
            return torch.zeros((len(sentence.first), self.dimension))
        states = torch.cat(hidden).cpu()
        sums = torch.cat(
            [torch.zeros(1, self.dimension, dtype=torch.float64), states.cumsum(0, dtype=torch.float64)]
        )
        first, count = torch.tensor(sentence.first), torch.tensor(sentence.count)
        return ((sums[first + count] - sums[first]) / count.clamp(min=1).unsqueeze(1)).float()


def encoder_of(  # noqa: PLR0913  keyword-only, one for each choice
    release: Release,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    packed: bool = True,
    base: str | None = None,
    adapter: str = ADAPTER,
) -> Encoder:
    """The encoder of a release: its base with its adapter or trained weights, if it has them; that of
    transformers where it is not to be `packed`. `base`: where its base is, if not where its name leads;
    `adapter`: the name of the adapter's file.

    Raises ReleaseError when the installed base is not the one the release was trained on, and ValueError
    when the files do not fit the base.
    """
    manifest = release.manifest
    base = base or manifest.base
    check_base(base, manifest.base_sha256, release.version)
    load = Encoder.for_inference if packed else Encoder.load
    return load(
        base,
        device=device,
        dtype=dtype,
        max_pieces=manifest.configuration["max_pieces"],
        adapter=release.file(adapter) if adapter in manifest.files else None,
        weights=release.file(WEIGHTS) if WEIGHTS in manifest.files else None,
    )


def padded(length: int, to: int = PAD_TO) -> int:
    """The smallest multiple of `to` that is not less than `length`."""
    return math.ceil(length / to) * to


def _first_id(*ids: int | None) -> int:
    for i in ids:
        if i is not None:
            return i
    raise ValueError("the tokenizer has no token for the start or the end of a sequence")
