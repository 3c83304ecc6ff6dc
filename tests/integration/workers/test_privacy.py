"""A worker and the commands say nothing of the records that they get, however wrong these are."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.integration import processes
from tests.integration.site import Site, stop
from tests.streams.test_nothing_personal import BAD, SECRET, line

pytestmark = pytest.mark.kafka


def test_no_output_of_a_worker_or_a_command_quotes_a_record(tiny_site: Site, tmp_path: Path) -> None:
    site = tiny_site
    lines = tmp_path / "lines"
    lines.write_bytes(b"\n".join([*BAD, line(), line(id=f"long {SECRET}", text=f"zoloft {SECRET} " * 300)]))
    site.env |= {"PV_MAX_OUTPUT_BYTES": "4096", "PV_AUTHOR_KEY": SECRET * 2}
    key = SECRET.encode()
    said = []

    def run(*arguments: str, code: int = 0) -> str:
        answer = processes.forked_command(*arguments, env=site.env)
        assert answer.returncode == code, answer.stderr
        said.append(answer.stdout + answer.stderr)
        return said[-1]

    site.produce("posts", [(key, value) for value in BAD])
    with site.running("up") as worker:
        site.wait_ready()
        assert "2 sent" in run("ingest", "posts", str(lines), "--mask", code=1)
        run("ingest", "questions", str(lines), code=1)
        site.wait_count(len(BAD) + 1, "posts.dead")
        site.wait_count(1, "events")
        run("redrive", "posts.dead")
        run("forget", f"id-{SECRET}", SECRET)
        run("forget", "--author", SECRET, code=2)
        processes.wait_until(lambda: any(m.value is None for m in site.read_all("events")), "the deletion")
        for path in ("metrics", "releases", "health/ready", "health/live", SECRET):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{site.port}/{path}", timeout=10) as answer:
                    said.append(answer.read().decode())
            except urllib.error.HTTPError as error:
                said.append(error.read().decode())
        stop(worker)
    said.append(site.log.read_text())
    headers = [str(m.headers) for m in site.read_all("posts.dead", "questions.dead", "mentions", "events")]
    assert len(headers) > len(BAD)
    for output in (*said, *headers):
        assert SECRET not in output, output
