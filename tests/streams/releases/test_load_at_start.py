"""The release that a worker starts with."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.releases.manifest import ReleaseError
from models.releases.store import bundled, open_release
from streams.releases.reload import load_at_start
from streams.settings import Settings
from tests.streams.releases.reloading import Store, announcement, live_series, reloads

pytestmark = pytest.mark.usefixtures("empty_gauge")


def test_without_an_announcement_the_bundled_release_is_loaded(store: Store) -> None:
    handle = load_at_start("summarization", None, store.settings)
    assert handle.current.version == bundled("summarization").name
    assert (handle.pinned, handle.refused, handle.reloads) == (False, None, 0)
    assert live_series() == [(bundled("summarization").name, 1.0)]


def test_the_announced_release_is_loaded(store: Store) -> None:
    handle = load_at_start("summarization", announcement(store.sound[0]), store.settings)
    assert handle.current.version == store.sound[0]
    assert (handle.pinned, handle.refused) == (False, None)


def test_only_the_announced_release_has_its_generation(store: Store) -> None:
    live, previous = store.sound[:2]
    found = [
        load_at_start("summarization", announced, store.settings, 7).current
        for announced in (announcement(live), announcement(store.failing, previous), None)
    ]
    bundled_version = bundled("summarization").name
    expected = [(live, 7), (previous, 0), (bundled_version, 0)]
    assert [(loaded.version, loaded.generation) for loaded in found] == expected


def test_the_bundled_release_can_be_announced_without_being_in_the_store(store: Store) -> None:
    handle = load_at_start("summarization", announcement(bundled("summarization").name), store.settings)
    assert handle.current.version == bundled("summarization").name


@pytest.mark.parametrize("missing", [False, True])
def test_if_the_announced_release_is_refused_the_previous_one_is_loaded(missing: bool, store: Store) -> None:
    refused = "0" * 12 if missing else store.failing
    before = reloads("refused")
    handle = load_at_start("summarization", announcement(refused, store.sound[1]), store.settings)
    assert handle.current.version == store.sound[1]
    assert handle.refused is not None
    assert handle.refused.version == refused
    assert ("is not in the store" if missing else "canary") in handle.refused.reason
    assert reloads("refused") == before + 1
    assert live_series() == [(store.sound[1], 1.0)]


@pytest.mark.parametrize("previous", [None, "1" * 12])
def test_if_both_are_refused_the_worker_does_not_start(previous: str | None, store: Store) -> None:
    with pytest.raises(ReleaseError):
        load_at_start("summarization", announcement(store.failing, previous), store.settings)
    assert live_series() == []


def test_a_release_for_another_task_is_refused(store: Store, tmp_path: Path) -> None:
    other = open_release(store.root / "summarization" / store.sound[0])
    (tmp_path / "acronym").mkdir()
    (tmp_path / "acronym" / other.version).symlink_to(other.path)
    settings = Settings(store=str(tmp_path))
    with pytest.raises(ReleaseError, match="a release for summarization, not for acronym"):
        load_at_start("acronym", announcement(other.version, task="acronym"), settings)


def test_the_release_in_the_settings_has_precedence_over_the_announced_one(store: Store) -> None:
    pinned = store.settings.model_copy(
        update={"releases": {"summarization": store.root / "summarization" / store.sound[2]}}
    )
    handle = load_at_start("summarization", announcement(store.sound[0]), pinned)
    assert handle.current.version == store.sound[2]
    assert handle.pinned
