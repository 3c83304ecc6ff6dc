"""Whether a sentence reports an adverse event: attention over its words as CLNER's encoder reads them, which
learned this too, or over its pieces as upper layers read them that learned this alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from models.encoder.model import Encoder
from models.encoder.split.layer_split import EncodedSentence, UpperLayers
from models.ner.head import EventHead
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors

#: The changes of the upper layers, and the tensors of the head over them.
SENTENCE_ADAPTER, SENTENCE_HEAD = "sentence.safetensors", "sentence_head.safetensors"


class SentenceHead:
    """The probability that a sentence reports an adverse event."""

    def __init__(self, head: EventHead, upper: UpperLayers | None = None) -> None:
        """`upper`: the layers above the split of the encoder that reads the sentences, where the head has its
        own.
        """
        self.head = head.eval()
        self.upper = upper

    @classmethod
    def load(
        cls,
        release: Release,
        dimension: int,
        below: int,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> SentenceHead:
        """The sentence head of a release over an encoder of this dimension, which is split after layer
        `below`; raises ReleaseError when its tensors do not fit the encoder.
        """
        upper = None
        if SENTENCE_ADAPTER in release.manifest.files:
            whole = Encoder.for_inference(
                release.manifest.base,
                device=device,
                dtype=dtype,
                max_pieces=release.manifest.configuration["max_pieces"],
                adapter=release.file(SENTENCE_ADAPTER),
            )
            upper = UpperLayers(whole, below)
        head = EventHead(dimension)
        tensors = read_tensors(release.file(SENTENCE_HEAD))
        try:
            head.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
        except RuntimeError as error:
            raise ReleaseError(f"{release.version}: the sentence head does not fit the encoder") from error
        return cls(head if upper is None else head.to(device), upper)

    def probabilities(self, encoded: Sequence[EncodedSentence]) -> list[float]:
        """The probability of each sentence; 0 where it has no words or pieces. Sentences do not affect each
        other.
        """
        with torch.inference_mode():
            if self.upper is None:
                read = [e.vectors for e in encoded]
            else:
                read = [torch.cat(s) if s else torch.empty(0) for s in self.upper.states_above(encoded)]
            return [float(self.head(own).sigmoid()) if len(own) else 0.0 for own in read]
