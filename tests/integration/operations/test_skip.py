"""`pvstream skip` on a real Kafka: one record goes to the dead letters, and nothing else is passed over."""

from __future__ import annotations

import pytest

from tests.integration import processes
from tests.integration.site import Site

pytestmark = pytest.mark.kafka


def test_a_record_that_stops_a_stage_is_moved_to_the_dead_letters(tiny_site: Site) -> None:
    site = tiny_site
    site.env["PV_SESSION_TIMEOUT"] = "6"
    key = b"one-key"
    site.produce("questions", [(key, b"%d" % i) for i in range(3)])
    (partition,) = {m.partition for m in site.read_all("questions")}

    def skip(offset: int, stage: str = "summarization") -> tuple[int, str]:
        answer = processes.forked_command(
            "skip", "questions", str(partition), str(offset), "--group", stage, env=site.env
        )
        return answer.returncode, answer.stdout + answer.stderr

    assert skip(0, "ner")[0] == 2
    code, text = skip(1)
    assert (code, "1 records before offset 1 are not processed yet" in text) == (1, True)
    code, text = skip(0)
    assert (code, "moved to questions.dead" in text) == (0, True), text
    code, text = skip(0)
    assert (code, "has passed offset 0 already: it continues at 1" in text) == (1, True)
    code, text = skip(7)
    assert (code, "has no offset 7: it holds 0 to 2" in text) == (1, True)
    (letter,) = site.read_all("questions.dead")
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (key, b"0")
    assert (headers["pv-reason"], headers["pv-offset"]) == (b"skipped", b"0")
    with site.running("worker", "--stage", "summarization"):
        site.wait_count(3, "questions.dead")
        code, text = skip(2)
        assert code == 1
    letters = site.read_all("questions.dead")
    assert sorted(m.value for m in letters) == [b"0", b"1", b"2"]
