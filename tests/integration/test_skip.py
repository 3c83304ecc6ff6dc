"""`pvstream skip` on a real Kafka: one record goes to the dead letters, and nothing else is passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration import processes
from tests.integration.kafka_server import LocalKafka

pytestmark = pytest.mark.kafka


def test_a_record_that_stops_a_stage_is_moved_to_the_dead_letters(kafka: LocalKafka, tmp_path: Path) -> None:
    env = processes.environment(kafka.bootstrap, processes.free_port())
    assert processes.command("topics", "--create", env=env).returncode == 0
    key = b"one-key"
    processes.produce(kafka.bootstrap, "questions", [(key, b"%d" % i) for i in range(3)])
    (partition,) = {m.partition for m in processes.read_all(kafka.bootstrap, "questions")}

    def skip(offset: int, stage: str = "summarization") -> tuple[int, str]:
        answer = processes.command(
            "skip", "questions", str(partition), str(offset), "--group", stage, env=env
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
    (letter,) = processes.read_all(kafka.bootstrap, "questions.dead")
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (key, b"0")
    assert (headers["pv-reason"], headers["pv-offset"]) == (b"skipped", b"0")
    with processes.running("worker", "--stage", "summarization", env=env, log=tmp_path / "log"):
        processes.wait_until(
            lambda: processes.count(kafka.bootstrap, "questions.dead") == 3,
            "the other two as bad records",
        )
        code, text = skip(2)
        assert code == 1
    letters = processes.read_all(kafka.bootstrap, "questions.dead")
    assert sorted(m.value for m in letters) == [b"0", b"1", b"2"]
