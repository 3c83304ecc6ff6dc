"""The README and the pages of docs/: links, tables made from the code, and the limits of length."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from docs.generate.tables import outdated, removal_table, topics_table
from streams.dead_letters.headers import Reason
from streams.records import Announcement
from streams.topics import DAY, TOPICS
from tests.deploy.test_deploy import alerts
from tests.docs import documents
from tests.docs.documents import DOCUMENTS, README, ROOT

LINE = 110
pages = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)


def test_the_tables_are_what_the_code_says() -> None:
    stale = [path.relative_to(ROOT) for path, _ in outdated()]
    assert stale == [], "run: python -m docs.generate"


def test_the_times_in_the_tables_are_those_that_topics_are_created_with() -> None:
    kept, removed = "\n".join(topics_table()), "\n".join(removal_table())
    for topic in TOPICS:
        entries = topic.configuration()
        days = int(entries["retention.ms"]) // DAY
        if not topic.compacted and topic.record is not None and days > 0:
            assert re.search(rf"^\| `{re.escape(topic.name)}` .* {days} days? \|$", kept, re.MULTILINE)
        if f"`{topic.name}`" in removed:
            assert days > 0 and topic.keyed == ("max.compaction.lag.ms" in entries)
    assert "`events`" in removed


def test_the_size_of_the_bundled_releases_is_what_the_page_says() -> None:
    found = re.search(
        r"bundled ones have ([\d.]+) to ([\d.]+) MB", (ROOT / "docs" / "operate.md").read_text()
    )
    assert found is not None
    folders = [path.parent for path in (ROOT / "models" / "pretrained").glob("*/*/manifest.json")]
    sizes = [sum(file.stat().st_size for file in folder.iterdir()) / 1e6 for folder in folders]
    assert [round(min(sizes), 1), round(max(sizes))] == [float(found[1]), float(found[2])]


@pages
def test_every_relative_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    for link in documents.links(path):
        if link.startswith("https://"):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name}: {link}"
        if anchor:
            assert anchor in documents.anchors(target), f"{path.name}: {link}"


def test_the_pages_are_no_longer_than_one_reads() -> None:
    results, train = ROOT / "benchmarks/RESULTS.md", ROOT / "docs/train.md"
    limits = {results: 200, train: 150, **dict.fromkeys((ROOT / "docs/models").glob("*.md"), 80)}
    lines = {page: len(page.read_text(encoding="utf-8").splitlines()) for page in limits}
    assert {page.name: n for page, n in lines.items() if n > limits[page]} == {}
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in DOCUMENTS) <= 35_000


def linked(page: Path) -> set[Path]:
    return {(page.parent / link).resolve() for link in documents.links(page)}


def test_the_readme_is_short_and_links_to_every_page_but_those_of_the_tasks() -> None:
    models = ROOT / "docs/models.md"
    tasks = set((ROOT / "docs/models").glob("*.md"))
    assert set(DOCUMENTS) - {README} - tasks <= linked(README)
    assert tasks <= linked(models)
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pages
def test_lines_and_sentences_are_short_and_code_blocks_name_their_language(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    long = [n for n, line in enumerate(lines, 1) if len(line) > LINE and not line.startswith("|")]
    # A command is not broken.
    assert [n for n in long if not lines[n - 1].startswith("python -m ")] == [], path.name
    assert [s for s in documents.sentences(path) if len(s) > 2 * LINE] == []
    assert set(documents.languages(path)) <= {"sh", "sql", "mermaid", "json", "python", "text", "yaml"}


def test_every_alert_field_and_reason_is_described() -> None:
    anchors = documents.anchors(ROOT / "docs/operate.md")
    assert {alert["alert"].lower() for alert in alerts()} <= anchors
    text = (ROOT / "docs/concepts.md").read_text(encoding="utf-8")
    kinds = {kind for topic in TOPICS for kind in topic.kinds} - {Announcement}
    names = {field.name for kind in kinds for field in fields(kind)}
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []
    for page in ("docs/replay.md", "docs/operate.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert [reason for reason in get_args(Reason) if f"`{reason}`" not in text] == []


def test_the_glossary_is_in_alphabetical_order() -> None:
    text = (ROOT / "docs/concepts.md").read_text(encoding="utf-8").split("\n## Glossary\n")[1]
    terms = [term.lower() for term in re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE)]
    assert len(terms) > 30
    assert terms == sorted(terms)


def test_the_picture_of_the_demo_has_no_address_of_another_site() -> None:
    picture = (ROOT / "docs/pictures/demo.svg").read_text(encoding="utf-8")
    assert len(picture) < 60_000
    assert set(re.findall(r"https?://[^\"' )<]+", picture)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",
    }
