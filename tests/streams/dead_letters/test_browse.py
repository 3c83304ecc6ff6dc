from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from streams.cli.operations.dead import letter_content
from streams.dead_letters.browse import describe, printable
from streams.dead_letters.headers import Fault, dead_letter
from streams.records import Inbound
from tests.fakes import inbound

OWN = (("patient-name", b"Ann"), ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"))


def letter(**changes: object) -> Inbound:
    source = replace(inbound(17, b'{"text": "my words"}'), headers=OWN)
    made = dead_letter(source, "ner", Fault("poison", "ValueError in predict, line 3"), "0123456789ab")
    written = Inbound("posts.dead", 0, 5, made.key, made.value, 1_760_000_000.0, tuple(made.headers))
    return replace(written, **changes)  # type: ignore[arg-type]


def test_a_letter_is_described_without_the_words_of_its_sender() -> None:
    one = describe(letter())
    assert (one.topic, one.partition, one.offset) == ("posts.dead", 0, 5)
    assert (one.stage, one.reason, one.source, one.attempts) == ("ner", "poison", "posts/0@17", 0)
    assert one.written_at == datetime.fromtimestamp(1_760_000_000, UTC)
    assert one.bytes == len(b'{"text": "my words"}')
    content = letter_content(letter(), text=False)
    assert (content["key"], content["headers"]["pv-release"]) == ("key-17", "0123456789ab")
    assert "Ann" not in str(one) + str(content)
    assert "words" not in str(one) + str(content)
    assert letter_content(letter(), text=True)["own_headers"]["patient-name"] == "Ann"
    assert letter_content(letter(), text=True)["value"] == '{"text": "my words"}'


def test_a_letter_waits_until_those_of_its_reason_were_sent_back() -> None:
    assert describe(letter()).waiting
    assert describe(letter(), {("poison", 0): (5, [])}).waiting
    assert not describe(letter(), {("poison", 0): (6, [(3, 5)])}).waiting
    assert describe(letter(), {("poison", 0): (9, [(2, 6)])}).waiting, "a redrive has left it"
    assert describe(letter(), {("bad_record", 0): (6, []), ("poison", 1): (6, [])}).waiting


def test_a_letter_that_somebody_else_wrote_is_described_too() -> None:
    strange = letter(
        headers=(("pv-reason", b"\xff"), ("pv-stage", None)), timestamp=-7e13, value=None, key=None
    )
    one = describe(strange)
    assert (one.reason, one.stage, one.written_at, one.bytes) == ("other", "", None, 0)
    content = letter_content(strange, text=True)
    assert (content["key"], content["value"], content["written"]) == (None, None, None)


def test_a_letter_cannot_command_the_terminal() -> None:
    assert printable("\x1b[2Jfine\u202e\nline") == "\\x1b[2Jfine\\u202e\nline"
    content = letter_content(letter(value=b"\x1b]0;title\x07\xff"), text=True)
    assert content["value"] == "\\x1b]0;title\\x07\\xff"
