"""Writes RESULTS.md from the manifests of the bundled releases and the files of benchmarks/results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from models.types import TASKS
from streams.handle import bundled

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
    return [*rows, ""]


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
    for task in TASKS:
        lines += release_rows(task)
    lines += ["## Measurements", ""]
    for path in sorted((ROOT / "results").glob("*.json")):
        lines += result_rows(path)
    (ROOT / "RESULTS.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
