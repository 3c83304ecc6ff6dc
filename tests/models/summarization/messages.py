"""Messages for property tests: any text, and texts with the fields of a contact form."""

from __future__ import annotations

from hypothesis import strategies as st

MESSAGES = st.one_of(
    st.text(min_size=1, max_size=120),
    st.lists(
        st.sampled_from(
            ["SUBJECT:", "message : ", "Can", "tea", "?", ".", "!", " ", "\n", "Re:", "\0", "\U0001f600"]
        ),
        min_size=1,
        max_size=25,
    ).map("".join),
)
