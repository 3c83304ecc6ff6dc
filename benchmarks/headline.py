"""The figures that stand for each task, next to a trivial baseline and to what papers publish.

Measured values come from benchmarks/results; published figures are typed here, as their papers print them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from models.releases.store import bundled

RESULTS = Path(__file__).parent / "results"
#: What is measured with the releases of several tasks together.
_RELEASES = {"posts": ("ner", "normalization")}
#: Tasks whose releases are not bundled because of the licence of their data.
OPTIONAL = ("idiom",)


def result_file(name: str) -> Path:
    """The file of a result. Raises ValueError where not exactly one folder of benchmarks/results has it."""
    (path,) = RESULTS.glob(f"*/{name}.json")
    return path


def is_measured(name: str) -> bool:
    return any(RESULTS.glob(f"*/{name}.json"))


class Figure(NamedTuple):
    """A measured value, how sure it is (an interval, or a deviation over folds) and the baseline, as text."""

    value: str
    spread: str
    baseline: str


class Row(NamedTuple):
    """A score and a published figure for the same task."""

    task: str
    data: str
    """the data in words, with the number of records"""
    counted: str
    """what is counted, in a few words"""
    result: str
    """the file in a folder of benchmarks/results, without .json"""
    score: str
    trivial: str
    """the baseline in a few words; a score in braces stands for its value in the same result"""
    published: str
    paper: str
    comparable: str
    """whether the two figures can be compared, and why not"""

    def figure(self) -> Figure:
        """Raises KeyError where the result lacks the score."""
        content = self._content()
        if "rows" in content and self.score in content["rows"]:
            return _evaluated(content, self.task, self.score)
        return _over_folds(content, self.score)

    def trivial_in_words(self) -> str:
        """The baseline in words, with the values that it names; KeyError where the result lacks one."""
        rows = self._content().get("rows", {})
        return re.sub(r"\{(\w+)\}", lambda name: _rounded(rows[name[1]]["value"]), self.trivial)

    def _content(self) -> dict[str, Any]:
        return dict(json.loads(result_file(self.result).read_bytes()))


def _evaluated(content: Mapping[str, Any], task: str, score: str) -> Figure:
    """A score of `benchmarks.evaluation`, with its bootstrap interval."""
    row = content["rows"][score]
    low, high = row["95 % interval"].split(" to ")
    spread = f"{_rounded(float(low))} to {_rounded(float(high))}"
    if task in OPTIONAL:
        spread += f", release {content['release']}, which is not bundled"
    elif content["release"] != "+".join(bundled(one).name for one in _RELEASES.get(task, (task,))):
        spread += f", release {content['release']}, not the bundled one"
    return Figure(_rounded(row["value"]), spread, _rounded(row["baseline"]))


def _over_folds(content: Mapping[str, Any], score: str) -> Figure:
    """A mean over folds with its standard deviation, or a single figure of a result."""
    deviation = (
        f"sd {content[f'{score}_sd']:.3f}, {content['folds_done']} folds" if f"{score}_sd" in content else ""
    )
    return Figure(_rounded(content[score]), deviation, _rounded(content[f"{score}_baseline"]))


def _rounded(value: float) -> str:
    """Three digits of a share, one of a percentage."""
    return f"{value:.1f}" if abs(value) > 1 else f"{value:.3f}"


CONORM = "CONORM (Yazdani et al.), BERTweet large"
CLDR = "CLDR/CLNER (Theodoropoulos et al. 2021), CharacterBERT"
ECL = "ECL (Lu et al. 2024), BART large"
SPERT = "SpERT (Eberts and Ulges 2020), BERT base"
M_NETWORKS = "m-networks (Seneviratne et al. 2022)"
TRIPLETS = "He et al. 2024, a multilingual base"

DICTIONARY = "longest match of the training mentions"
EVERY_PAIR = "link every pair of predicted mentions"
FOLDS = "ADE corpus, the papers' 10 folds"
FOLD_1 = "ADE corpus, fold 1 of the papers' 10"
NOT_PUBLIC = "no, its data (SMM4H 2023) is not public"

#: One row for each question that a reader asks first.
HEADLINES: tuple[Row, ...] = (
    Row(
        "ner", "PsyTAR test, 1,191 sentences of patients", "mentions, strict micro F1 over 4 labels",
        "evaluation_ner", "strict_micro_f1", DICTIONARY,
        "not given", CONORM, NOT_PUBLIC,
    ),
    Row(
        "ner", FOLDS, "drugs and effects, strict macro F1",
        "ner_ade_folds", "strict_macro_f1", DICTIONARY,
        "0.893", SPERT, "yes, the same folds; an overlapped entity, which BIO tags cannot hold, is a miss",
    ),
    Row(
        "normalization", "PsyTAR, 1,436 mentions of held-out drugs and terms",
        "mentions given, accuracy of the first candidate",
        "evaluation_normalization", "acc@1", "the mention alone, without phrases",
        "not given", CONORM, NOT_PUBLIC,
    ),
    Row(
        "normalization", "PsyTAR, 194 held-out sentences", "mentions predicted, F1 of preferred terms",
        "evaluation_normalization_end_to_end", "f1", "the same without sentences and phrases",
        "0.502", CONORM, "no, other texts and another terminology",
    ),
    Row(
        "posts", "748 held-out posts of the teaching corpus, synthetic",
        "text to unflagged coded events, F1 of preferred terms",
        "evaluation_posts", "coded_f1", "every name of the terminology, with the same rules",
        "not given", "none", "no, the posts were written for this project",
    ),
    Row(
        "posts", "PsyTAR test, 872 sentences without an event of coder training",
        "text to unflagged coded events, F1 of preferred terms",
        "evaluation_posts_psytar", "coded_f1", "every name of the terminology, with the same rules",
        "not given", "none", "no",
    ),
    Row(
        "relation", FOLD_1, "mentions of the bundled tagger, strict relation F1",
        "evaluation_relation", "re_strict_macro_f1", EVERY_PAIR,
        "0.792", SPERT, "in part, one of the same folds and the usual counting",
    ),
    Row(
        "relation", f"{FOLD_1}, with sentences without an event in the corpus' proportion",
        "strict relation F1",
        "evaluation_relation", "re_corpus_f1", EVERY_PAIR,
        "not given", CLDR, "no, papers leave out the sentences without an event",
    ),
    Row(
        "ner", "PHEE dev, 961 sentences of case reports, most of them in training",
        "age, sex, dose, route, duration and onset by rules, overlap F1",
        "case_fields", "overlap_f1", "one pattern a field",
        "not given", "none", "no",
    ),
    Row(
        "acronym", "CASI, 1,109 held-out rows, acronyms of training", "accuracy",
        "evaluation_acronym", "accuracy", "the acronym's commonest sense",
        "0.546", f"{M_NETWORKS}, BioBERT; from their F = 2 acc / (1 + acc)",
        "in part, the same acronyms but another split of the rows",
    ),
    Row(
        "summarization", "MeQSum test, 500 questions", "ROUGE-1 F1 in percent",
        "evaluation_summarization", "rouge1",
        "first sentence; a template for the kind of question: {rouge1_template}",
        "52.9", ECL, "yes, the same questions; `rouge-score` with stemming here, py-rouge there",
    ),
    Row(
        "idiom", "SemEval-2022 task 2B dev, English, 521 idiom pairs", "Spearman's rho",
        "idiom", "spearman_idiom", "the base model, not trained",
        "0.560", TRIPLETS, "no, dev here, test there; 496 of the pairs have an expression of training",
    ),
)  # fmt: skip

_HEAD = (
    "task",
    "data and what is counted",
    "ours (95 % interval, or deviation)",
    "trivial baseline",
    "published",
    "comparable?",
)


def table(rows: Sequence[Row]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [_line(_HEAD), "|---" * len(_HEAD) + "|"]
    for row in rows:
        ours = row.figure()
        spread = f" ({ours.spread})" if ours.spread else ""
        cells = (
            row.task,
            f"{row.data}: {row.counted}",
            f"**{ours.value}**{spread}",
            f"{ours.baseline} ({row.trivial_in_words()})",
            f"{row.published} ({row.paper})",
            row.comparable,
        )
        lines.append(_line(cells))
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
