"""The model card of an exported network: what it is, how it is called, its figures, what it lacks."""

from __future__ import annotations

import re
from typing import Literal

from models.encoder.base_files import MINI
from models.language import ENGLISH
from models.ner.decoding import TRANSITIONS
from models.ner.model import EVENT_HEAD, STATUS_HEAD
from models.normalization.context_refining import DCR
from models.releases.manifest import Release

Form = Literal["sentence-transformers", "transformers", "onnx"]

#: What the stage does beside the exported network, each with the file that a release must hold for it.
_LACKS = {
    "ner": (
        ("", 'Here the first piece of a word decides its tag: use `aggregation_strategy="first"`. In '
         "training the classifier had a flag for later pieces, which is 0. No piece gets the tag X."),
        (TRANSITIONS, "The tags of a sentence are decoded together (Viterbi, with learned transitions)."),
        (EVENT_HEAD, "A head says whether a sentence reports an event, which weighs the tags of events."),
        (STATUS_HEAD, "A head tells the status of an effect: here negated, hypothetical and other people's "
         "effects are tagged like the writer's."),
        ("", "The drug lexicon, names of adverse events and rules."),
        ("", "A text is read by its sentences, and none is cut: here a text ends after {pieces} pieces."),
    ),
    "normalization": (
        ("", "The names of the terminology and patients' phrases, with their vectors, and the search."),
        ("", "Names of a term are added up, a name with the very words is preferred, and terms of opposite "
         "polarity are refused. A rule decides whether there is no code (NIL)."),
        ("", "Spelling is corrected, and measured values are read in words."),
        (DCR, "The vector of a mention is refined by that of its sentence."),
        ("", "As here, a text ends after {pieces} pieces."),
    ),
    "idiom": (
        ("", "Nothing: the tokenizer puts the tokens of {expressions} expressions into a text. Where two "
         "expressions overlap, that of more words is replaced, even if the other begins earlier."),
        ("", "As here, a text ends after {pieces} pieces."),
    ),
}  # fmt: skip
_CALLS = {
    "sentence-transformers": """\
from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer(".").encode(["could not sleep at all", "insomnia"])
""",
    "transformers": """\
from transformers import pipeline

tag = pipeline("token-classification", model=".", aggregation_strategy="first")
found = tag("Zoloft made me so dizzy that I fell.")
""",
    "onnx": """\
from onnxruntime import InferenceSession
from transformers import AutoTokenizer

tokenizer, session = AutoTokenizer.from_pretrained("."), InferenceSession("model.onnx")
texts = ["could not sleep at all", "insomnia"]
pieces = tokenizer(texts, padding=True, truncation=True, return_tensors="np")
(answers,) = session.run(None, {name: pieces[name] for name in ("input_ids", "attention_mask")})
""",
}
_CARD = """\
---
license: apache-2.0
language: [{languages}]
library_name: {form}
pipeline_tag: {pipeline}
tags: [pharmacovigilance]
---

# {task} {version}

The network of a release of pvstream for the task {task}: {kind}. Its numbers are those of pvstream to 1e-4.
Its base is {base}{digest}.

```python
{call}```

## What the stage of pvstream does beside or otherwise

{lacks}

## Figures

Of the release as pvstream serves it, with all that is missing here:

| score | value | baseline | data | records | definition |
|---|---|---|---|---|---|
{figures}

## Licences

Code and weights: Apache-2.0. Trained on:

{data}
"""


def card(release: Release, form: Form) -> str:
    """README.md of an export: its file paths are relative to the folder."""
    manifest = release.manifest
    settings, task = manifest.configuration, release.task
    numbers = {"pieces": settings["max_pieces"], "expressions": len(settings.get("expressions", ()))}
    lacks = [line for needed, line in _LACKS[task] if not needed or needed in manifest.files]
    return _CARD.format(
        form=form,
        task=task,
        version=release.version,
        kind=manifest.kind,
        languages=", ".join(settings.get("languages", ENGLISH)),
        pipeline="token-classification" if task == "ner" else "sentence-similarity",
        base="all-MiniLM-L6-v2" if manifest.base == MINI else manifest.base,
        digest=f" (sha256 of its weights {manifest.base_sha256})" if manifest.base_sha256 else "",
        call=_CALLS[form],
        lacks="\n".join(f"- {line.format_map(numbers)}" for line in lacks),
        figures="\n".join(_figures(release)),
        data="\n".join(f"- {d.name}: {d.licence}" for d in dict.fromkeys(manifest.training_data)),
    )


def _figures(release: Release) -> list[str]:
    """A row of the table for each score."""
    rows = []
    for s in release.manifest.scores:
        baseline = "" if s.baseline is None else f"{s.baseline:g} ({s.baseline_definition})"
        cells = (s.name, f"{s.value:g}", baseline, s.data, str(s.records), s.definition)
        rows.append("| " + " | ".join(re.sub(r"\s*\|\s*", "/", cell) for cell in cells) + " |")
    return rows
