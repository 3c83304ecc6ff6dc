"""The judge: a tagger over a larger encoder, which reads again the texts in which the stage's tagger found an
effect, and those of which the source states a medicine. Its mentions replace the tagger's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from models.encoder import mpnet
from models.encoder.base_files import resolve_base
from models.ner.model import NerModel
from models.releases.manifest import Release
from models.types import CODED_LABELS, JUDGE, OWN, Case, Mention, Stated

#: Characters of the longest text that is read: about ten seconds of one fast processor, which a slow one must
#: do within the time of an inference.
LONGEST = 20_000
#: Where nothing is stated, an effect is the writer's from this probability on: a judge has learned from texts
#: that mostly begin with what is stated, and is less sure without (docs/models/judge.md).
OWN_UNSTATED_FROM = 0.3


class JudgeModel:
    """Decides on the texts that it reads; the mentions of others stay as they are."""

    task = JUDGE

    def __init__(self, tagger: NerModel) -> None:
        self.tagger = tagger

    @classmethod
    def load(
        cls,
        release: Release,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        cache: Path | None = None,
    ) -> JudgeModel:
        """`cache`: folder in which the base is put together. Raises ReleaseError where the base is missing or
        another one than the release declares.
        """
        base = release.manifest.base
        folder = str(mpnet.mpnet_folder(cache)) if base == mpnet.NAME else resolve_base(base)
        if not Path(folder).is_dir():
            raise mpnet.BaseMissing(f"the base {base} of the judge is missing")
        return cls(NerModel.load(release, device=device, dtype=dtype, base=folder, exact=False))

    def predict(self, batch: Sequence[Case]) -> list[list[Mention]]:
        """The mentions of each text, as the judge has them where it reads the text."""
        found = [list(case.mentions) for case in batch]
        for is_stated, tagger in ((True, self.tagger), (False, self._of_unstated())):
            read = [i for i, c in enumerate(batch) if is_read(c) and (c.stated != Stated()) is is_stated]
            again = tagger.predict([batch[i].text for i in read], [batch[i].stated for i in read])
            for i, mentions in zip(read, again, strict=True):
                found[i] = mentions
        return found

    def _of_unstated(self) -> NerModel:
        """The tagger for texts of which nothing is stated."""
        decoding = self.tagger.decoding
        if not decoding.stated_read:
            return self.tagger
        return self.tagger.with_decoding(own_from=min(decoding.own_from, OWN_UNSTATED_FROM))

    @staticmethod
    def canary_inputs(stored: list[Any]) -> list[Case]:
        """Cases from a manifest's JSON values."""
        return TypeAdapter(list[Case]).validate_python(stored)

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[list[Mention]]:
        """Mentions from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[list[Mention]]).validate_python(stored)


def is_read(case: Case) -> bool:
    """Whether a text is worth the larger encoder. What a tagger takes for denied, feared or is unsure of
    may have happened, and of a text that a source offers as a medicine's it misses one event of six.
    """
    has_effect = any(m.label in CODED_LABELS or m.status == OWN for m in case.mentions)
    return len(case.text) <= LONGEST and (bool(case.stated.drugs) or has_effect)
