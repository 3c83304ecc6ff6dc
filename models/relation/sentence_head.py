"""Whether a sentence reports an adverse event: attention over its words as CLNER's encoder reads them, which
learned this too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from models.ner.heads import EventHead
from models.relation.spaces import EncodedSentence
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors

#: The tensors of the head.
SENTENCE_HEAD = "sentence_head.safetensors"


class SentenceHead:
    """The probability that a sentence reports an adverse event."""

    def __init__(self, head: EventHead) -> None:
        self.head = head.eval()

    @classmethod
    def load(cls, release: Release, dimension: int) -> SentenceHead:
        """The sentence head of a release over an encoder of this dimension; raises ReleaseError when its
        tensors do not fit the encoder.
        """
        head = EventHead(dimension)
        tensors = read_tensors(release.file(SENTENCE_HEAD))
        try:
            head.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
        except RuntimeError as error:
            raise ReleaseError(f"{release.version}: the sentence head does not fit the encoder") from error
        return cls(head)

    def probabilities(self, encoded: Sequence[EncodedSentence]) -> list[float]:
        """The probability of each sentence; 0 where it has no words. Sentences do not affect each other."""
        with torch.inference_mode():
            return [float(self.head(e.vectors).sigmoid()) if len(e.vectors) else 0.0 for e in encoded]
