"""Whether a sentence reports an adverse event: upper layers that are trained for this question alone, on the
hidden states of the shared lower layers, and attention over the pieces.
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

    def __init__(self, upper: UpperLayers, head: EventHead) -> None:
        """`upper`: the layers above the split of the encoder that reads the sentences."""
        self.upper = upper
        self.head = head.eval()

    @classmethod
    def load(
        cls, release: Release, below: int, *, device: str = "cpu", dtype: torch.dtype = torch.float32
    ) -> SentenceHead:
        """The sentence head of a release whose encoder is split after layer `below`; raises ReleaseError
        when its tensors do not fit the encoder.
        """
        whole = Encoder.for_inference(
            release.manifest.base,
            device=device,
            dtype=dtype,
            max_pieces=release.manifest.configuration["max_pieces"],
            adapter=release.file(SENTENCE_ADAPTER),
        )
        head = EventHead(whole.dimension)
        tensors = read_tensors(release.file(SENTENCE_HEAD))
        try:
            head.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
        except RuntimeError as error:
            raise ReleaseError(f"{release.version}: the sentence head does not fit the encoder") from error
        return cls(UpperLayers(whole, below), head.to(device))

    def probabilities(self, encoded: Sequence[EncodedSentence]) -> list[float]:
        """The probability of each sentence; 0 where it has no pieces. Sentences do not affect each other."""
        with torch.inference_mode():
            return [
                float(self.head(torch.cat(states)).sigmoid()) if states else 0.0
                for states in self.upper.states_above(encoded)
            ]
