"""Trains CONORM-NER (CONORM, section 3.1) and writes a release: a low-rank adapter, the head, and the drug
lexicon.

Phase 1 (first epoch): the head alone, lr 1e-3. Phase 2: adapter and head. Each phase has its own linear
schedule with 10 % warm-up; AdamW, cross-entropy over all pieces, gradients clipped at 1.0; the epoch with the
best strict F1 on 10 % of the training sentences is kept.
"""

from __future__ import annotations

import copy
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from rich.console import Console
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from models import drugs
from models.drugs import DrugLexicon
from models.encoder import Encoder, Words, base_digest
from models.ner import Head, NerModel, tags_of
from models.release import TrainingData
from models.scores import SpanScores, strict_spans
from models.text import words
from models.types import DRUG, LABELS, Span
from training.evaluate import manifest_scores
from training.evaluations.ner import ADE_TAGS, PSYTAR_TAGS
from training.publish import OFFERED, offer, print_scores, publish_release
from training.readers import GoldText, hold_out, read_ade_fold, read_psytar
from training.scores import gold_spans, mention_spans

console = Console()
ADE_CORPUS = TrainingData(
    name="ADE corpus v2 (Gurulingappa et al. 2012), fold 1 training part",
    licence="none stated, citation asked",
)
PSYTAR = TrainingData(name="PsyTAR (Zolnoori et al. 2019), training part", licence="CC BY 4.0")


@dataclass(frozen=True, slots=True)
class Example:
    """Pieces of a sentence, their gold tags, and 1 for every piece that does not begin a word."""

    pieces: list[int]
    tags: list[int]
    flags: list[int]


def word_tags(gold: GoldText, spans: Sequence[Span], lexicon: DrugLexicon | None) -> list[str]:
    """B, I and O of each word. Of overlapping mentions the longest is kept; a corpus without drugs gets the
    lexicon's.
    """
    tags = ["O"] * len(spans)
    wanted = [(m.start, m.end, m.label) for m in sorted(gold.mentions, key=lambda m: m.start - m.end)]
    if lexicon is not None:
        wanted += [(s.start, s.end, DRUG) for s, _ in lexicon.find(gold.text)]
    for start, end, label in wanted:
        inside = [i for i, s in enumerate(spans) if start <= s.start and s.end <= end]
        if inside and all(tags[i] == "O" for i in inside):
            for i in inside:
                tags[i] = ("B-" if i == inside[0] else "I-") + label
    return tags


def examples(
    texts: Sequence[GoldText], encoder: Encoder, tags: Sequence[str], lexicon: DrugLexicon | None
) -> list[Example]:
    spans = [words(t.text) for t in texts]
    surfaces = [[t.text[s.start : s.end] for s in ws] for t, ws in zip(texts, spans, strict=True)]
    number = {tag: i for i, tag in enumerate(tags)}
    made = []
    for text, ws, split in zip(texts, spans, encoder.split(surfaces), strict=True):
        made.append(_example(split, [number[t] for t in word_tags(text, ws, lexicon)], number["X"], encoder))
    return made


def _example(split: Words, gold: list[int], continuation: int, encoder: Encoder) -> Example:
    tags, flags = [], []
    for tag, count in zip(gold, split.count, strict=True):
        tags += ([tag] + [continuation] * (count - 1))[:count]
        flags += ([0] + [1] * (count - 1))[:count]
    limit = encoder.max_pieces - 2
    return Example(split.pieces[:limit], tags[:limit], flags[:limit])


def batches(data: Sequence[Example], size: int, rng: random.Random) -> Iterator[list[Example]]:
    """Shuffled, with sentences of like length together so that little padding is computed."""
    order = list(data)
    rng.shuffle(order)
    pool = size * 20
    made = []
    for start in range(0, len(order), pool):
        near = sorted(order[start : start + pool], key=lambda e: len(e.pieces))
        made += [near[i : i + size] for i in range(0, len(near), size)]
    rng.shuffle(made)
    yield from made


def loss_of(encoder: Encoder, head: Head, batch: Sequence[Example]) -> Tensor:
    """Cross-entropy over every piece of the batch, X pieces included."""
    hidden = encoder.forward([e.pieces for e in batch])
    inside = torch.cat([hidden[row, 1 : 1 + len(e.pieces)] for row, e in enumerate(batch)])
    flags = torch.tensor([f for e in batch for f in e.flags], dtype=inside.dtype, device=inside.device)
    tags = torch.tensor([t for e in batch for t in e.tags], device=inside.device)
    return nn.functional.cross_entropy(head(inside, flags), tags)


def train_phase(
    encoder: Encoder,
    head: Head,
    data: Sequence[Example],
    *,
    epochs: int,
    lr: float,
    size: int,
    rng: random.Random,
) -> Iterator[float]:
    """Trains whatever requires a gradient; yields the mean loss after each epoch."""
    parameters = [p for m in (encoder.model, head) for p in m.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=lr)
    steps = epochs * -(-len(data) // size)
    schedule = get_linear_schedule_with_warmup(optimizer, steps // 10, steps)  # type: ignore[no-untyped-call]
    for _ in range(epochs):
        encoder.model.train()
        head.train()
        losses = []
        for batch in batches(data, size, rng):
            loss = loss_of(encoder, head, batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        encoder.model.eval()
        head.eval()
        yield sum(losses) / len(losses)


def adapter_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The trained pairs by name of their layer in the base, the scale folded into b, in 16 bits."""
    tensors = {}
    for name, module in model.named_modules():
        if isinstance(module, LoraLayer):
            lora_a: Any = module.lora_A["default"]
            lora_b: Any = module.lora_B["default"]
            layer = name.removeprefix("base_model.model.")
            tensors[f"{layer}.lora_a"] = lora_a.weight.detach().half().contiguous()
            scaled = lora_b.weight.detach() * module.scaling["default"]
            tensors[f"{layer}.lora_b"] = scaled.half().contiguous()
    return tensors


def score(model: NerModel, texts: Sequence[GoldText], labels: Sequence[str]) -> SpanScores:
    return strict_spans(mention_spans(model.predict([t.text for t in texts])), gold_spans(texts), labels)


CANARY = [
    "Zoloft gave me awful insomnia and night sweats, no nausea though.",
    "Intravenous azithromycin - induced ototoxicity .",
    "brain zaps since I stopped effexor, was on it for depression",
    "The weather was fine.",
]


def main(
    data: Annotated[Path, typer.Option(help="folder with psytar/ and ade/")],
    output: Annotated[Path, typer.Option(help="root of the releases")] = Path("models/pretrained"),
    base: Annotated[str, typer.Option(help="`mini`, a hub name or a path")] = "mini",
    epochs: Annotated[int, typer.Option(help="of both phases together")] = 12,
    rank: int = 16,
    lr: Annotated[float, typer.Option(help="of phase 2; 3e-5 in the paper, for a far larger model")] = 5e-4,
    batch: int = 24,
    seed: int = 42,
    limit: Annotated[int, typer.Option(help="training sentences at most; 0: all")] = 0,
    offered: OFFERED = False,
) -> None:
    torch.manual_seed(seed)
    rng = random.Random(seed)
    lexicon = DrugLexicon.load()
    ade_train, _ = read_ade_fold(data / "ade", 1)
    seen = {t.text for t in read_psytar(data / "psytar/ner_test.conll")}
    # Thirteen test sentences also stand in the training part: they are taken out of it.
    psytar = [t for t in read_psytar(data / "psytar/ner_train.conll") if t.text not in seen]
    psytar_train, psytar_valid = hold_out(psytar, 0.1, seed)
    ade_train, ade_valid = hold_out(ade_train, 0.1, seed)
    if limit:
        psytar_train, ade_train = psytar_train[:limit], ade_train[:limit]

    encoder = Encoder.load(base)
    # The pooler's output is not used: an adapter on it would learn nothing.
    linear = [n for n, m in encoder.model.named_modules() if isinstance(m, nn.Linear) and "pooler" not in n]
    # A copy: the weights that were loaded are shared by every encoder of the process.
    encoder.model = get_peft_model(
        copy.deepcopy(encoder.model),
        LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=linear, lora_dropout=0.05),
    )
    tags = tags_of(LABELS)
    head = Head(encoder.dimension, len(tags))
    training = examples(ade_train, encoder, tags, None) + examples(psytar_train, encoder, tags, lexicon)
    console.print(f"{len(training)} training sentences, {len(psytar_valid) + len(ade_valid)} for validation")

    adapted = [p for p in encoder.model.parameters() if p.requires_grad]
    for p in adapted:
        p.requires_grad_(False)
    best, kept = -1.0, Path(tempfile.mkdtemp(prefix="ner-"))
    epoch = 0
    for phase, n, rate in ((1, 1, 1e-3), (2, epochs - 1, lr)):
        if phase == 2:  # noqa: PLR2004  the two phases of the paper
            for p in adapted:
                p.requires_grad_(True)
        started = time.monotonic()
        for loss in train_phase(encoder, head, training, epochs=n, lr=rate, size=batch, rng=rng):
            epoch += 1
            model = NerModel(encoder, head, LABELS, None)
            posts = score(model, psytar_valid, PSYTAR_TAGS).micro.f1
            clinical = score(model, ade_valid, ADE_TAGS).micro.f1
            mark = ""
            if (posts + clinical) / 2 > best:
                best, mark = (posts + clinical) / 2, "  kept"
                save_file(adapter_tensors(encoder.model), kept / "adapter.safetensors")
                save_file({k: v.half() for k, v in head.state_dict().items()}, kept / "head.safetensors")
            console.print(
                f"epoch {epoch:2d}  phase {phase}  loss {loss:.4f}  validation strict micro F1: "
                f"posts {posts:.4f}, clinical {clinical:.4f}  {time.monotonic() - started:.0f} s{mark}"
            )
    shutil.copyfile(drugs.BUNDLED, kept / "drugs.tsv")
    configuration: dict[str, Any] = {
        "labels": list(LABELS),
        "max_pieces": encoder.max_pieces,
        "training": {"epochs": epochs, "rank": rank, "lr": lr, "batch": batch, "seed": seed},
    }
    release = publish_release(
        kept,
        task="ner",
        kind="CONORM-NER head over a low-rank adapter",
        base=base,
        base_sha256=base_digest(base),
        configuration=configuration,
        training_data=[ADE_CORPUS, PSYTAR],
        canary=CANARY,
        scores=lambda model: manifest_scores("ner", model, data, ("psytar_test", "ade_fold_1")),
        root=output,
    )
    shutil.rmtree(kept)
    print_scores(console, release)
    if offered:
        offer(release, data)


if __name__ == "__main__":
    typer.run(main)
