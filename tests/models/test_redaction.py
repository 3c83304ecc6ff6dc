from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.redaction import redact


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("https://user:word@host/path", "https://***@host/***"),
        ("kafka://user:word@one:9092,two:9092", "kafka://***@one:9092,two:9092"),
        ("s3://key@bucket/releases/mine/2026-07", "s3://***@bucket/releases/mine/2026-07"),
        ("https://user:p@ss?w#rd@host/a", "https://***@host/***"),
        ("https://host/releases?sv=2024-01&sig=aB%2Bc%3D", "https://host/releases?***"),
        ("https://host:8443/v1?SECRET", "https://host:8443/v1?***"),
        ("https://host/v1;token=SECRET", "https://host/v1?***"),
        ("https://host/v1?a=1&amp;sig=SECRET", "https://host/v1?***"),
        ("https://host/services/T0/B0/SECRET/feed", "https://host/***/***/***/***/feed"),
        ("https://host#access_token=SECRET", "https://host?***"),
        ("https://host?SECRET", "https://host?***"),
        ("http://[2001:db8::1]:8080/metrics", "http://[2001:db8::1]:8080/metrics"),
        ("https://user:pa/ss@host/a", "https://***/***"),
        ("https://user:12/ss@host/a", "https://***/***"),
        ("https://mastodon.example/@someone", "https://***/***"),
        ("at://did:plc:SECRET/app.bsky.feed.post/3k", "at://***"),
        ("https://a/x/https://user:word@b/y", "https://***/***"),
        ("JDBC:POSTGRESQL://u:SECRET@host/name", "JDBC:POSTGRESQL://***@host/name"),
        ("postgresql://user@host/name?password=SECRET", "postgresql://***@host/name?***"),
        ("file:///srv/releases", "file:///srv/releases"),
        ("xxxxxxxxxxxxxxxxxxxxxxxxxxxx://u:SECRET@host", "xxxxxxxxxxxxxxxxxxxxxxxxxxxx://***@host"),
        ("GET /a?X-Amz-Signature=SECRET HTTP/1.1", "GET /a?*** HTTP/1.1"),
        ('"GET /a?SECRET HTTP/1.1"', '"GET /a?*** HTTP/1.1"'),
        ("path=/a;jsessionid=SECRET", "path=/a?***"),
        ("a&token=SECRET b;token='SECRET'", "a&token=*** b;token=***'"),
        ('url="https://host/a?token=SECRET", status 403', 'url="https://host/***?***", status 403'),
        ("(see https://host/live).", "(see https://host/live)."),
        ("https://host/live and mail@example.org", "https://host/live and mail@example.org"),
        (
            "is it a=b? yes & no; /etc/pvstream/token is a file",
            "is it a=b? yes & no; /etc/pvstream/token is a file",
        ),
    ],
)
def test_of_an_address_only_what_is_known_to_be_harmless_stays(text: str, redacted: str) -> None:
    assert redact(text) == redacted
    assert redact(redacted) == redacted
    assert "SECRET" not in redacted


WORD = st.text(
    st.characters(codec="utf-8", exclude_categories=["Z", "C"], exclude_characters="/"), min_size=4
)


@given(WORD)
def test_a_password_is_never_left(word: str) -> None:
    # After the word another one, because a word may be a part of the text around it.
    text = f"the store https://user:{word}@host/path fails"
    assert redact(text) == "the store https://***@host/*** fails"


#: What may stand for a secret in an address, and characters that a server's own rules may put beside it.
SECRET = st.text("abcXYZ019", min_size=8, max_size=40)
GLUE = st.text("/?&;=#:@,.%!$'()*+~_-|\"<>[]{}\\^`é😀", max_size=6)
SCHEMES = st.sampled_from(["https", "http", "wss", "ftp", "unknown+more", "HTTPS"])


@given(SCHEMES, st.sampled_from(["host", "host:80", "[::1]", "user@host", "a.example"]), GLUE, SECRET, GLUE)
def test_no_secret_is_left_behind_hosts(scheme: str, host: str, before: str, secret: str, after: str) -> None:
    redacted = redact(f"it fails: {scheme}://{host}/{before}{secret}{after} again")
    assert secret not in redacted
    assert redacted.startswith("it fails: ") and redacted.endswith(" again")
    assert redact(redacted) == redacted


@given(SCHEMES, SECRET, st.text("abc019/?#;:@", max_size=12))
def test_a_user_and_a_password_are_never_left(scheme: str, secret: str, more: str) -> None:
    for user in (f"{secret}:{more}", f"{more}:{secret}", f"{more}@{secret}/{more}"):
        redacted = redact(f"{scheme}://{user}@host.example:9092/releases")
        assert secret not in redacted


@pytest.mark.parametrize(
    "run", ["a", "/", "://", ";a=", "?", "&amp;", '"/', "@", "a://", "x:", "=/", ".", ",a", "[:", "a.b-"]
)
def test_the_time_grows_with_the_length_of_the_text(run: str) -> None:
    def seconds(n: int) -> float:
        text = run * (n // len(run))
        began = time.process_time()
        redact(text)
        redact(f"https://{text}")
        return time.process_time() - began

    assert seconds(200_000) < 20 * max(seconds(20_000), 0.01) + 0.2
