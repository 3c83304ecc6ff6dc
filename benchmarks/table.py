"""Writes RESULTS.md from the manifests of the bundled releases and the files of benchmarks/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from models.releases.store import bundled
from models.types import TASKS

ROOT = Path(__file__).parent


def release_rows(task: str) -> list[str]:
    path = bundled(task)
    manifest = json.loads((path / "manifest.json").read_bytes())
    size = sum(f["size"] for f in manifest["files"].values()) / 1e6
    rows = [f"### {task}: {manifest['kind']} (`{path.name}`, {size:.1f} MB over `{manifest['base']}`)", ""]
    rows += ["| data | records | score | value | baseline | what is counted | what the baseline is |"]
    rows += ["|---|---|---|---|---|---|---|"]
    for s in manifest["scores"]:
        base = "" if s["baseline"] is None else s["baseline"]
        rows.append(
            f"| {s['data']} | {s['records']} | {s['name']} | {s['value']} | {base} | {s['definition']} "
            f"| {s['baseline_definition']} |"
        )
    sources = "; ".join(f"{d['name']} ({d['licence']})" for d in manifest["training_data"]) or "none"
    return [*rows, "", f"Trained on: {sources}.", ""]


def result_rows(path: Path) -> list[str]:
    row: dict[str, Any] = json.loads(path.read_bytes())
    rows = [f"### {path.stem}", "", "| figure | value |", "|---|---|"]
    rows += [f"| {name} | {value} |" for name, value in row.items() if not isinstance(value, dict)]
    return [*rows, "", *inner_rows(row.get("rows", {})), ""]


def inner_rows(rows: dict[str, dict[str, Any]]) -> list[str]:
    """A table of a result that has several lines of the same figures."""
    if not rows:
        return []
    names = [name for name, value in next(iter(rows.values())).items() if not isinstance(value, dict)]
    head = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    return head + [
        f"| {key} | " + " | ".join("" if r[n] is None else str(r[n]) for n in names) + " |"
        for key, r in rows.items()
    ]


class Published(NamedTuple):
    """A figure of a paper beside the place of ours: a bundled release's score, or a figure of a result."""

    task: str
    what: str
    figure: str
    data: str
    """begins the name of the data in our manifest, or is the file of a result"""
    score: str
    comparable: str


#: CONORM (Yazdani et al.), CLDR/CLNER, m-networks, and ECL, as their papers print them.
PUBLISHED = (
    Published(
        "ner",
        "CONORM-NER, BERTweet large, SMM4H 2023, F1",
        "not given alone",
        "PsyTAR test",
        "strict_micro_f1",
        "no: that data is not public; ours is strict micro F1 over four labels of PsyTAR",
    ),
    Published(
        "ner",
        "CLNER, CharacterBERT, ADE corpus, 10 folds, macro F1",
        "0.883",
        "ner_ade_folds",
        "strict_macro_f1",
        "the same folds; here an overlapped entity, which BIO cannot hold, counts as missed",
    ),
    Published(
        "normalization",
        "CONORM end to end, SMM4H 2023, F1 (out of distribution)",
        "0.502 (0.394)",
        "PsyTAR, held-out sentences",
        "f1",
        "no: other texts, and PsyTAR's names are mapped by string to the bundled terminology",
    ),
    Published(
        "idiom",
        "triplets over a multilingual base, SemEval-2022 task 2B, dev, English, idiom Spearman",
        "0.560",
        "SemEval-2022 task 2B, dev, EN",
        "spearman_idiom",
        "the same file and scorer; both mark known expressions, and 496 of the 521 rows have one of training",
    ),
    Published(
        "relation",
        "CLDR, CharacterBERT, ADE corpus, 10 folds, strict F1",
        "0.7997",
        "relation_ade_folds",
        "re_strict_f1_authors",
        "the same folds, counted as the authors do: a relation with a wrong entity is not missed",
    ),
    Published(
        "relation",
        "CLGS, CharacterBERT, ADE corpus, right graph among nine (Table 2)",
        "0.9123",
        "relation_tables",
        "similarity_check",
        "fold 1; the wrong graphs are drawn anew, from the same corpus",
    ),
    Published(
        "acronym",
        "m-networks, BioBERT, CASI, accuracy (their F is 2 acc / (1 + acc))",
        "0.546",
        "CASI",
        "accuracy",
        "in part: the same acronyms, another split of the rows",
    ),
    Published(
        "acronym",
        "m-networks, SciBERT, SDU-21, accuracy (from their F)",
        "0.775",
        "SDU",
        "accuracy",
        "no: ours is SDU-22, whose dev acronyms do not occur in training",
    ),
    Published(
        "summarization",
        "ECL, BART large, MeQSum, ROUGE-1",
        "52.85",
        "MeQSum",
        "rouge1",
        "the same 500 test questions; `rouge-score` with stemming instead of py-rouge",
    ),
)


def published_rows() -> list[str]:
    rows = ["| task | published | figure | ours | baseline | comparable? |", "|---|---|---|---|---|---|"]
    for p in PUBLISHED:
        ours, base = ours_of(p)
        rows.append(f"| {p.task} | {p.what} | {p.figure} | {ours} | {base} | {p.comparable} |")
    return rows


def ours_of(published: Published) -> tuple[str, str]:
    """Our score and its baseline; `not measured` where nothing holds it yet."""
    result = ROOT / "results" / f"{published.data}.json"
    if result.exists():
        row = json.loads(result.read_bytes())
        folds = f" ({row['folds_done']} folds)" if "folds_done" in row else ""
        return f"{row[published.score]}{folds}", str(row.get(f"{published.score}_baseline", ""))
    manifest = json.loads((bundled(published.task) / "manifest.json").read_bytes())
    for s in manifest["scores"]:
        if s["name"] == published.score and s["data"].startswith(published.data):
            return str(s["value"]), "" if s["baseline"] is None else str(s["baseline"])
    return "not measured", ""


def main() -> None:
    lines = [
        "# Results",
        "",
        "Made by `python -m benchmarks.table`: scores from the manifests of the bundled releases, measured",
        "on the model as it is served; speeds from `benchmarks/results/*.json`, each with its command.",
        "Machines differ and are shared: compare ratios, not seconds.",
        "",
        "## Releases",
        "",
    ]
    for task in (*TASKS, "idiom"):
        lines += release_rows(task)
    lines += ["## Beside the published figures", "", *published_rows(), "", "## Measurements", ""]
    for path in sorted((ROOT / "results").glob("*.json")):
        lines += result_rows(path)
    (ROOT / "RESULTS.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
