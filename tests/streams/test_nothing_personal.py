"""No log line, metric, header or message holds a text, an id, an author or a key, whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client import generate_latest

from models.types import Mention
from streams import metrics
from streams.agents import ner
from streams.dead_letters.headers import dead_letter
from streams.intake.intake import PostIntake
from streams.intake.items import Post
from streams.records import Report, TaggedReport, extend
from streams.settings import Settings
from streams.stage import Stage, StageBroken, run_stage
from streams.topics import MENTIONS, POSTS
from tests.fakes import FakePorts, FakeTagger, batches_of, inbound, loaded
from tests.streams.cli.command_line import CommandLine, closed_port

SECRET = "Quoxwhistle"
#: A producer's record with the word in every field, as key and as value.
FIELDS: dict[str, Any] = {
    "id": f"id-{SECRET}", "text": f"zoloft {SECRET}", "drug": f"drug {SECRET}", "author": f"@{SECRET}",
    "permalink": f"https://example.org/{SECRET}", "country": SECRET, "language": SECRET, "likes": SECRET,
    f"field-{SECRET}": SECRET, "duplicate_of": f"dup-{SECRET}", "created_at": "2026-03-04",
    "similar_to": f"like-{SECRET}",
}  # fmt: skip


def line(**changed: Any) -> bytes:
    return orjson.dumps(FIELDS | changed)


def observable(caplog: pytest.LogCaptureFixture) -> str:
    return caplog.text + generate_latest(metrics.REGISTRY).decode()


class Failing:
    """A model that quotes the text in its error."""

    def predict(self, batch: Sequence[str], _stated: object = ()) -> list[list[Mention]]:
        if any(SECRET in text for text in batch):
            raise ValueError(f"cannot read {batch}")
        return [[] for _ in batch]


def not_encodable(model: Any, batch: Sequence[Report]) -> list[TaggedReport]:
    return [extend(TaggedReport, r, language={SECRET: r.text.encode()}) for r in batch]


def quoting_id(model: Any, batch: Sequence[Report]) -> list[TaggedReport]:
    raise KeyError(batch[0].id)


BAD = (
    b"{" + SECRET.encode(), line(id=[SECRET]), line(text={SECRET: SECRET}),
    line(aggregate_only=SECRET), line(masked=[{"kind": SECRET, "start": 0, "end": 1}]),
    line(masked=SECRET), line(duplicate_of=SECRET + "\n"), line(id=SECRET + "\n"),
    line(similar_to=SECRET + "\n"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "predict", "limit"),
    [
        (BAD, ner.predict, 10**6),
        ((line(), line(id=f"other {SECRET}")), ner.predict, 10**6),
        ((line(),), quoting_id, 10**6),
        ((line(),), not_encodable, 10**6),
        ((line(),), ner.predict, 100),
        ((None, line()), ner.predict, 10**6),
    ],
    ids=["bad record", "poison", "an error that is the id", "not encodable", "too large", "tombstone"],
)
async def test_a_stage_says_nothing_of_a_record_that_fails(
    values: Sequence[bytes | None], predict: Any, limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stage: Stage[Report, TaggedReport] = Stage("ner", POSTS, MENTIONS, predict)
    ports = FakePorts(loaded(Failing()))
    ports.max_output_bytes = limit
    records = [replace(inbound(i, v), key=SECRET.encode()) for i, v in enumerate(values)]
    await run_stage(stage, batches_of(records), ports)
    sent = [*ports.to("posts.dead"), *ports.to("mentions")]
    assert len(sent) == len(values)
    assert len(ports.to("posts.dead")) == sum(v is not None for v in values)
    for _, _, headers in sent:
        assert SECRET not in str(dict(headers))
    assert SECRET not in observable(caplog)


async def test_a_model_that_fails_always_ends_without_quoting_texts(caplog: pytest.LogCaptureFixture) -> None:
    stage: Stage[Report, TaggedReport] = Stage("ner", POSTS, MENTIONS, ner.predict)
    with pytest.raises(StageBroken) as broken:
        await run_stage(stage, batches_of([inbound(0, line())]), FakePorts(loaded(FakeTagger(failing=True))))
    assert SECRET not in str(broken.value) + observable(caplog)


def test_a_letter_that_is_cut_has_nothing_of_the_value_in_its_headers() -> None:
    from streams.dead_letters.headers import Fault  # noqa: PLC0415

    record = inbound(0, SECRET.encode() * 300_000)
    assert SECRET not in str(dead_letter(record, "ner", Fault("bad_record", "detail"), "v").headers)


def test_the_intake_counts_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    intake = PostIntake.of(Settings(author_key=SECRET * 2, duplicate_reports=1000))  # type: ignore[arg-type]
    post = Post(id=SECRET, text=f"my zoloft and {SECRET}", author=SECRET, language="en", permalink=SECRET)
    for changed in (
        {}, {"id": ""}, {"id": f"{SECRET}\n"}, {"text": SECRET}, {"language": SECRET}, {"country": SECRET},
        {"text": f"zoloft {SECRET} " + "@a " * 1001}, {"text": f"\ud83d{SECRET}"}, {"repost_of": SECRET},
    ):  # fmt: skip
        intake.take(replace(post, **changed))  # type: ignore[arg-type]
    intake.forget(SECRET)
    assert SECRET not in observable(caplog)


def test_no_command_prints_what_it_was_given(pvstream: CommandLine, tmp_path: Path) -> None:
    files = {"lines": b"\n".join(BAD), "handles": SECRET.encode(), "key": SECRET.encode() * 2}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    pvstream.set("PV_BROKER", f"kafka://127.0.0.1:{closed_port()}")
    pvstream.set("PV_AUTHOR_KEY_FILE", str(tmp_path / "key"))
    failing = [
        ("forget", SECRET),
        ("forget", "--author", SECRET),
        ("forget", "--handles", tmp_path / "handles"),
        ("forget",),
        ("ingest", "posts", tmp_path / "lines", "--mask"),
    ]
    answers = [pvstream(*arguments) for arguments in failing]
    pvstream.set("PV_AUTHOR_KEY_OLD", SECRET)
    answers.append(pvstream("forget", "1"))
    for answer in answers:
        assert answer.code != 0
        assert SECRET not in answer.out + answer.err
