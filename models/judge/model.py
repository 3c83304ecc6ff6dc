"""The judge: reads the texts again in which the tagger found an effect, and decides what each of them is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from models.encoder.model import Encoder
from models.encoder.weights import ADAPTER
from models.judge.base import CACHE, WEIGHTS, base_folder
from models.judge.features import Features, HowToRead
from models.judge.head import Decision, JudgeHead, Rule, decided
from models.releases.manifest import Release, ReleaseError
from models.releases.tensors import read_tensors
from models.types import CODED_LABELS, DRUG, JUDGE, LABELS, Case, Mention

HEAD = "head.safetensors"
#: Files of the base that every release of a judge declares.
NEEDED = frozenset({WEIGHTS, "config.json", "tokenizer.json"})


class JudgeModel:
    """Decides on the mentions of effects of each text; those of drugs stay as they are."""

    task = JUDGE

    def __init__(self, features: Features, head: JudgeHead, rule: Rule) -> None:
        self.features = features
        self.head = head
        self.rule = rule

    @classmethod
    def load(
        cls,
        release: Release,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        cache: Path = CACHE,
    ) -> JudgeModel:
        """`cache`: folder in which the base is put together. Raises ReleaseError where the base is missing or
        a file of it is another one than the release declares; none is read before.
        """
        manifest = release.manifest
        files = declared_files(release)
        folder = base_folder(manifest.base, files, cache)
        encoder = Encoder.load(
            str(folder),
            device=device,
            dtype=dtype,
            max_pieces=manifest.configuration["max_pieces"],
            adapter=release.file(ADAPTER) if ADAPTER in manifest.files else None,
        )
        rule = Rule.of(manifest.configuration)
        features = Features(encoder, TypeAdapter(HowToRead).validate_python(manifest.configuration["read"]))
        head = JudgeHead.stored(read_tensors(release.file(HEAD)), features.size, len(rule.classes))
        return cls(features, head.to(device), rule)

    def predict(self, batch: Sequence[Case]) -> list[list[Mention]]:
        """The mentions of each text as decided, in its order, without those that are none."""
        decisions = [iter(own) for own in self.decide(batch)]
        return [
            [m for one in case.mentions if (m := one if one.label == DRUG else _as_decided(one, next(own)))]
            for case, own in zip(batch, decisions, strict=True)
        ]

    @torch.inference_mode()
    def decide(self, batch: Sequence[Case]) -> list[list[Decision | None]]:
        """The decision on each mention of an effect, in its order; None where it has no vector (see
        `Features.of`), and stays as it is. Texts without an effect, or without an event, are not read
        (`HowToRead.texts`).
        """
        effects = [replace(c, mentions=tuple(m for m in c.mentions if m.label != DRUG)) for c in batch]
        needed = CODED_LABELS if self.features.how.texts == "events" else LABELS
        numbers = [i for i, case in enumerate(effects) if any(m.label in needed for m in case.mentions)]
        vectors = self.features.of([effects[i] for i in numbers])
        found: list[list[Decision | None]] = [[None] * len(case.mentions) for case in effects]
        placed = [
            (found[i], j, vector, effects[i].mentions[j])
            for i, own in zip(numbers, vectors, strict=True)
            for j, vector in enumerate(own)
            if vector is not None
        ]
        if placed:
            rows = torch.stack([vector for _, _, vector, _ in placed])
            logits = self.head(rows.to(self.head.output.weight))
            decisions = self.rule.decisions(logits, [mention for *_, mention in placed])
            for (own, j, *_), decision in zip(placed, decisions, strict=True):
                own[j] = decision
        return found

    @staticmethod
    def canary_inputs(stored: list[Any]) -> list[Case]:
        """Cases from a manifest's JSON values."""
        return TypeAdapter(list[Case]).validate_python(stored)

    @staticmethod
    def canary_outputs(stored: list[Any]) -> list[list[Mention]]:
        """Mentions from a manifest's JSON values, whose missing fields get their defaults."""
        return TypeAdapter(list[list[Mention]]).validate_python(stored)


def declared_files(release: Release) -> dict[str, str]:
    """The sha256 of each file of the base; raises ReleaseError where the release does not declare those of
    the weights, the configuration and the tokenizer.
    """
    manifest = release.manifest
    files = dict(manifest.configuration.get("base_files", {}))
    if NEEDED - files.keys() or files[WEIGHTS] != manifest.base_sha256:
        raise ReleaseError(f"{release.version}: a judge must declare the sha256 of its base's files")
    return files


def _as_decided(mention: Mention, decision: Decision | None) -> Mention | None:
    return mention if decision is None else decided(mention, decision)
