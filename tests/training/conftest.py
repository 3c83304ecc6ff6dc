"""What runs of training on tiny bases share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def few_written() -> Iterator[None]:
    """A tenth of the written texts: over all of them the rule for NIL and the search for leaks would take
    most of the time of a run.
    """
    from training.normalization import nil_rule  # noqa: PLC0415  seconds to import
    from training.summarization import data  # noqa: PLC0415
    from training.teaching.readers import phrases  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        questions = data.written_questions
        patch.setattr(nil_rule, "phrases", lambda part: phrases(part)[::10])
        patch.setattr(data, "written_questions", lambda part: questions(part)[::10])
        yield
