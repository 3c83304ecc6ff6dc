from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.redaction import redact


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("https://user:word@host/path", "https://***@host/path"),
        ("kafka://user:word@one:9092,two:9092", "kafka://***@one:9092,two:9092"),
        ("s3://key@bucket/releases", "s3://***@bucket/releases"),
        ("https://user:p@ss?w#rd@host/a", "https://***@host/a"),
        ("https://host/a?sv=2024-01&sig=aB%2Bc%3D", "https://host/a?sv=***&sig=***"),
        ("GET /a?X-Amz-Signature=abc HTTP/1.1", "GET /a?X-Amz-Signature=*** HTTP/1.1"),
        ('url="https://host/a?token=abc", status 403', 'url="https://host/a?token=***", status 403'),
        ("https://host/a and mail@example.org", "https://host/a and mail@example.org"),
        ("is it a=b? yes & no", "is it a=b? yes & no"),
    ],
)
def test_users_passwords_and_query_values_of_urls_are_replaced(text: str, redacted: str) -> None:
    assert redact(text) == redacted
    assert redact(redacted) == redacted


WORD = st.text(
    st.characters(codec="utf-8", exclude_categories=["Z", "C"], exclude_characters="/"), min_size=4
)


@given(WORD)
def test_a_password_is_never_left(word: str) -> None:
    # After the word another one, because a word may be a part of the text around it.
    text = f"the store https://user:{word}@host/path fails"
    assert redact(text) == "the store https://***@host/path fails"
