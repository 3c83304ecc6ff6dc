"""The decoder of ECL (Lu et al. 2024): an encoder-decoder of `transformers`, such as BART."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from models.encoder.base_files import resolve_base
from models.encoder.weights import check_base, pretrained
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.summarization.model import WRITTEN
from models.types import ShortQuestion

#: The last 1/TAIL of the pieces that are read of a long text are taken from its end, where the question often
#: is.
TAIL = 4


@dataclass(frozen=True, slots=True)
class Search:
    """Settings of a beam search; lengths are in pieces."""

    beams: int = 4
    """hypotheses per text; 1: greedy search"""
    length_penalty: float = 1.0
    """the sum of log-probabilities is divided by the length to this power"""
    no_repeat: int = 3
    """n-grams of this length occur at most once in a summary; 0: any n-gram may be repeated"""
    shortest: int = 3
    """without the end"""
    longest: int = 48
    """without the end"""


class Summary(NamedTuple):
    """A summary with a score from 0 to 1: the geometric mean of its pieces' probabilities."""

    text: str
    score: float


class Decoder:
    """Writes with any encoder-decoder of `transformers`. No stage serves it: what it writes may name what the
    text does not name.
    """

    task = "summarization"

    def __init__(self, model: Any, tokenizer: Any, settings: Search, max_pieces: int) -> None:
        self.model, self.tokenizer, self.settings, self.max_pieces = model, tokenizer, settings, max_pieces

    @classmethod
    def load(cls, release: Release, *, device: str = "cpu") -> Decoder:
        """The base with the weights that training changed; raises ReleaseError where they do not fit."""
        manifest = release.manifest
        check_base(manifest.base, manifest.base_sha256, release.version)
        model, tokenizer = encoder_decoder(manifest.base)
        changed = read_tensors(release.file(WRITTEN))
        own = dict(model.named_parameters())
        if any(name not in own or own[name].shape != tensor.shape for name, tensor in changed.items()):
            raise ReleaseError(f"{release.version}: {WRITTEN} does not hold weights of {manifest.base}")
        model.load_state_dict({name: tensor.float() for name, tensor in changed.items()}, strict=False)
        model = model.to(device=device).eval()
        configuration = manifest.configuration
        return cls(model, tokenizer, Search(**configuration["search"]), configuration["max_pieces"])

    def predict(self, batch: Sequence[str]) -> list[ShortQuestion]:
        """The best summary of each text."""
        return [ShortQuestion(best.text, "abstractive", best.score) for best, *_ in self.write(batch)]

    @torch.inference_mode()
    def write(self, texts: Sequence[str]) -> list[list[Summary]]:
        """Summaries of each text, best first; deterministic and batch-invariant."""
        out: list[list[Summary]] = []
        for text in texts:
            # One text at a time: in a batch its padding, and so its bits, would depend on the other texts.
            encoded = pieces_of(self.tokenizer, [text or " "], self.max_pieces)
            out.append(self._generated(encoded.to(self.model.device)))
        return out

    def _generated(self, encoded: Any) -> list[Summary]:
        s = self.settings
        output = self.model.generate(
            input_ids=encoded["input_ids"],
            attention_mask=encoded["attention_mask"],
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
        texts = self.tokenizer.batch_decode(output.sequences, skip_special_tokens=True)
        indices = output.beam_indices if s.beams > 1 else None
        logs = self.model.compute_transition_scores(
            output.sequences, output.scores, indices, normalize_logits=s.beams == 1
        )
        # After the end of a shorter hypothesis scores are 0 or not finite.
        logs = torch.where(torch.isfinite(logs), logs, 0.0)
        means = (logs.sum(1) / (logs != 0).sum(1).clamp(min=1)).exp().tolist()
        return [Summary(" ".join(t.split()), round(m, 4)) for t, m in zip(texts, means, strict=True)]


def encoder_decoder(base: str) -> tuple[Any, Any]:
    """An encoder-decoder of `transformers` and its tokenizer, from a hub name or a path."""
    from transformers import AutoTokenizer  # noqa: PLC0415  seconds to import

    return pretrained(base, "AutoModelForSeq2SeqLM"), AutoTokenizer.from_pretrained(resolve_base(base))


def pieces_of(tokenizer: Any, texts: Sequence[str], max_pieces: int) -> Any:
    """Padded pieces and mask of texts; of a longer text `max_pieces` of both ends."""
    ids = tokenizer(list(texts), verbose=False)["input_ids"]
    return tokenizer.pad({"input_ids": [_both_ends(own, max_pieces) for own in ids]}, return_tensors="pt")


def _both_ends(ids: Sequence[int], limit: int) -> list[int]:
    tail = limit // TAIL
    return list(ids) if len(ids) <= limit else [*ids[: limit - tail], *ids[len(ids) - tail :]]
