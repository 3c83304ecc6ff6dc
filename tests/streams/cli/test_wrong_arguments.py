"""A wrong argument ends a command with exit code 2 and says what is wrong, before anything is done."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.streams.cli.command_line import NOWHERE, CommandLine

#: The broker that is set, and the arguments with a part of what is said.
WRONG = {
    "": f"""
announce docs -> set PV_BROKER=
rollback ner {NOWHERE} -> set PV_BROKER=
shadow ner {NOWHERE} -> set PV_BROKER=
shadow ner --stop -> set PV_BROKER=
replay posts -> set PV_BROKER=
redrive posts.dead -> set PV_BROKER=
terminology diff {NOWHERE} {NOWHERE} -> set PV_BROKER=
rollback nor {NOWHERE} -> 'nor' is none of ner, acronym,
shadow nor {NOWHERE} -> 'nor' is none of ner, acronym,
evaluate nor --data . -> 'nor' is none of ner, acronym,
shadow ner -> either a release or --stop
shadow ner {NOWHERE} --stop -> either a release or --stop
shadow ner {NOWHERE} --share 0 -> --share
shadow ner {NOWHERE} --share 1.1 -> --share
replay posts --release nor=x -> expected TASK=RELEASE
replay posts --release ner -> expected TASK=RELEASE
replay posts --compare ner= -> expected TASK=RELEASE
evaluate posts --split psytar_test -> posts psytar_test requires --data
evaluate posts --release relation=docs -> posts is evaluated with a release of ner and normalization
evaluate posts --release x -> expected TASK=RELEASE
evaluate ner -> ner psytar_test requires --data
evaluate ner --release x --release y -> ner is evaluated with one release
evaluate idiom --data . -> no release of idiom comes with pvstream
releases --worker 127.0.0.1:http -> '127.0.0.1:http' is not host:port
releases --worker '127.0.0.1:80 80' -> '127.0.0.1:80 80' is not host:port
""",
    "embedded": """
worker --stage nor -> no stage 'nor'
ingest events - -> is none of posts, sentences, questions
ingest posts no-such-file.jsonl -> no file no-such-file.jsonl
demo --input posts -> TOPIC=FILE
demo --input events=pyproject.toml -> TOPIC=FILE
demo --input posts=LICENSE --input posts=Makefile -> posts has a file already
replay posts --release ner=a --release ner=b -> ner has a release already
replay posts --output none/x.jsonl -> none/x.jsonl: there is no folder
replay posts --html docs -> docs: is a folder
terminology diff a b --json none/x -> none/x: there is no folder
evaluate posts --json LICENSE/x -> LICENSE/x: there is no folder
demo --report docs -> docs: is a folder
signals --html none/x -> none/x: there is no folder
topics -> PV_BROKER
tail events -> PV_BROKER
tail events --latest -> PV_BROKER
tail posts.dead --latest -> dead letters have no latest record
tail events --until-end -> PV_BROKER
status -> PV_BROKER
status --patience -1 -> --patience
source mastodon --sweep 0 -> greater than or equal to 0.1
dead -> PV_BROKER
dead posts.dead 0 -> one letter has a partition and an offset
dead posts.dead --reason bored -> is none of bad_record, poison
demo --limit MANY -> less than or equal to 1000000000
demo --show MANY -> less than or equal to 1000000000
tail events --count MANY -> less than or equal to 1000000000
tail events --latest --count MANY -> less than or equal to 1000000000
dead posts.dead --limit MANY -> less than or equal to 1000000000
redrive posts.dead --limit MANY -> less than or equal to 1000000000
terminology diff a b --show MANY -> less than or equal to 1000000000
evaluate posts --limit MANY -> less than or equal to 1000000000
query SELECT --limit MANY -> less than or equal to 1000000000
signals --show MANY -> less than or equal to 1000000000
signals --every 1e300 -> less than or equal to 31622400
signals --refit 1e300 -> less than or equal to 31622400
status --patience 1e300 -> less than or equal to 31622400
source rss --every 1e300 -> less than or equal to 31622400
""",
    "localhost:9092": """
topics -> PV_BROKER
""",
    "kafka://127.0.0.1:1": """
tail nosuch | schema nosuch | dead posts | dead nosuch 0 0 | redrive posts | skip nosuch 0 0 --group ner
redrive posts.dead --reason nosuch | skip posts 0 0 --group nosuch | replay nosuch | topics nosuch
replay posts --against nofile | replay posts --release ner=/nonexistent | replay posts --from nosuch
replay posts --to nosuch | replay posts --to-prefix posts | rollback ner not-a-version | export docs
terminology diff /nonexistent /nonexistent | evaluate posts --release ner=/nonexistent | evaluate nosuch
evaluate ner --data /nonexistent | evaluate posts --split nosuch | announce /nonexistent | nosuch
sign /nonexistent --key LICENSE | sign docs --key /nonexistent | announce docs --key /nonexistent
verify /nonexistent | rollback nosuch 000000000000 | shadow ner /nonexistent | shadow nosuch --stop
status --worker nonsense | releases --worker nonsense
terminology nosuch | demo --column x --input posts=LICENSE
web --terminology /nonexistent | web --terminology LICENSE | signals --source nosuch | forget
signals --level nosuch | signals --criterion nosuch | signals --until nosuch | signals --html docs
source x -> needs a bearer token in PV_X_TOKEN_FILE
source mastodon -> needs a server
source rss -> needs at least one feed
source telex -> 'telex' is none of bluesky, x, mastodon, rss, ndjson
source rss --feed nonsense | demo --source mastodon
source bluesky --topic nosuch | demo --source nosuch | demo --source bluesky --input posts=LICENSE
demo --input nosuch=LICENSE | demo --input posts=/nonexistent | ingest nosuch -
demo --encoding nosuch --input posts=LICENSE | ingest posts /nonexistent | reviews | reviews nosuch
ingest posts LICENSE --encoding nosuch | ingest posts LICENSE --column nosuch
reviews export --csv | reviews export --cases --examples
""".replace(" | ", "\n"),
}
CASES = [
    (broker, *line.partition(" -> ")[::2]) for broker, lines in WRONG.items() for line in lines.split("\n")
]


@pytest.mark.parametrize(("broker", "arguments", "message"), [case for case in CASES if case[1]])
def test_a_wrong_argument_ends_with_exit_code_2(
    broker: str, arguments: str, message: str, pvstream: CommandLine, tmp_path: Path
) -> None:
    if broker:
        pvstream.set("PV_BROKER", broker)
    pvstream.set("PV_DATABASE", str(tmp_path / "pv.duckdb"))
    answer = pvstream(*shlex.split(arguments.replace("MANY", "9" * 20)))
    assert answer.code == 2, answer.one_line
    assert message in answer.one_line
