"""The release that a worker starts with."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from models.releases.manifest import ReleaseError
from models.releases.store import bundled, open_release
from streams import metrics
from streams.rollout import loading
from streams.rollout.reload import load_at_start
from streams.settings import Settings
from tests.streams.conftest import Keys
from tests.streams.rollout.reloading import Store, announcement, fallback, live_series, reloads

pytestmark = pytest.mark.usefixtures("empty_gauge")


@contextmanager
def hanging_store() -> Iterator[str]:
    """A store that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/releases"


def test_the_announced_release_is_loaded_with_its_generation_or_else_the_bundled_one(store: Store) -> None:
    handle = load_at_start("summarization", None, store.settings)
    assert handle.current.version == bundled("summarization").name
    assert (handle.pinned, handle.refused, handle.reloads) == (False, None, 0)
    assert live_series() == [(bundled("summarization").name, 1.0)]
    handle = load_at_start("summarization", announcement(store.sound[0]), store.settings)
    assert handle.current.version == store.sound[0]
    assert (handle.pinned, handle.refused) == (False, None)
    live, previous = store.sound[:2]
    found = [
        load_at_start("summarization", announced, store.settings, 7).current
        for announced in (announcement(live), announcement(store.failing, previous), None)
    ]
    bundled_version = bundled("summarization").name
    expected = [(live, 7), (previous, 0), (bundled_version, 0)]
    assert [(loaded.version, loaded.generation) for loaded in found] == expected
    handle = load_at_start("summarization", announcement(bundled("summarization").name), store.settings)
    assert handle.current.version == bundled("summarization").name


def test_what_was_preloaded_serves_where_it_is_wanted_and_no_other_release(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_PRELOADED", {})

    def model(version: str | None) -> object:
        announced = None if version is None else announcement(version)
        return load_at_start("summarization", announced, store.settings).current.model

    live = store.sound[0]
    loading.preload("summarization", None, store.settings)
    assert model(None) is model(None) and model(live) is not model(live)
    loading.preload(
        "summarization", loading.kept_folder("summarization", store.settings) / live, store.settings
    )
    assert model(live) is model(live) is not model(None)
    assert load_at_start("summarization", announcement(live), store.settings, 7).current.generation == 7


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
@pytest.mark.parametrize("store_is_there", [True, False])
def test_if_neither_loads_the_worker_starts_with_the_bundled_release(
    previous: str | None, store_is_there: bool, store: Store, tmp_path: Path
) -> None:
    settings = store.settings if store_is_there else Settings(store=str(tmp_path / "nowhere"))
    handle = load_at_start("summarization", announcement(store.failing, previous), settings)
    assert handle.current.version == bundled("summarization").name
    assert handle.refused is not None
    assert (handle.refused.version, handle.refused.retryable) == (store.failing, not store_is_there)
    assert live_series() == [(bundled("summarization").name, 1.0)]
    assert fallback() == 1


def test_without_the_store_a_kept_copy_of_the_announced_one_is_loaded(store: Store, tmp_path: Path) -> None:
    announced = announcement(store.sound[0], store.sound[1])
    load_at_start("summarization", announced, store.settings)
    metrics.FALLBACK.labels("summarization").set(0)
    gone = Settings(store=str(tmp_path / "nowhere"), dtype="float32")
    handle = load_at_start("summarization", announced, gone)
    assert handle.current.version == store.sound[0]
    assert handle.refused is None
    assert fallback() == 0


@pytest.mark.slow
def test_a_store_that_hangs_delays_a_start_only_until_the_deadline(store: Store) -> None:
    announced = announcement(store.sound[0], store.sound[1])
    load_at_start("summarization", announced, store.settings)
    with hanging_store() as address:
        hung = store.settings.model_copy(update={"store": address, "store_deadline": 1.0})
        started = time.monotonic()
        assert load_at_start("summarization", announced, hung).current.version == store.sound[0]
        other = load_at_start("summarization", announcement("0" * 12, "1" * 12), hung)
        assert time.monotonic() - started < 60
    assert other.current.version == store.sound[0]
    assert other.refused is not None
    assert "is not copied within 1 s from the store" in other.refused.reason
    assert other.refused.retryable
    assert fallback() == 1


def test_without_the_store_the_last_good_release_is_loaded(store: Store, tmp_path: Path, state: Path) -> None:
    for version in store.sound:
        load_at_start("summarization", announcement(version), store.settings)
    kept = state / "releases/summarization"
    assert {p.name for p in kept.iterdir()} == set(store.sound[1:])
    gone = Settings(store=str(tmp_path / "nowhere"), dtype="float32")
    announced = announcement("0" * 12, "1" * 12)
    assert load_at_start("summarization", announced, gone).current.version == store.sound[2]
    assert fallback() == 1
    # A kept copy is verified as any other release.
    (kept / store.sound[2] / "words.tsv").write_text("word\nhemlock\n")
    assert load_at_start("summarization", announced, gone).current.version == store.sound[1]
    # Another release in its folder is not what it says.
    shutil.rmtree(kept / store.sound[1])
    shutil.copytree(store.root / "summarization" / store.sound[0], kept / store.sound[1])
    assert load_at_start("summarization", announced, gone).current.version == bundled("summarization").name
    # With the store back the damaged copy is replaced.
    load_at_start("summarization", announcement(store.sound[2]), store.settings)
    assert open_release(kept / store.sound[2]).version == store.sound[2]


def test_a_kept_release_needs_the_required_signature_and_may_not_be_kept_at_all(
    store: Store, tmp_path: Path, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    load_at_start("summarization", announcement(store.sound[0]), store.settings)
    gone = Settings(store=str(tmp_path / "nowhere"), release_key=keys.public)
    handle = load_at_start("summarization", announcement(store.sound[0]), gone)
    assert handle.current.version == bundled("summarization").name
    (tmp_path / "file").touch()
    settings = store.settings.model_copy(update={"state": tmp_path / "file"})
    handle = load_at_start("summarization", announcement(store.sound[0]), settings)
    assert handle.current.version == store.sound[0]
    assert "is not kept in" in caplog.text


def test_a_release_for_another_task_is_refused(store: Store, tmp_path: Path) -> None:
    other = open_release(store.root / "summarization" / store.sound[0])
    (tmp_path / "acronym").mkdir()
    (tmp_path / "acronym" / other.version).symlink_to(other.path)
    settings = Settings(store=str(tmp_path))
    handle = load_at_start("acronym", announcement(other.version, task="acronym"), settings)
    assert handle.current.version == bundled("acronym").name
    assert handle.refused is not None
    assert "a release for summarization, not for acronym" in handle.refused.reason


def test_a_release_in_the_settings_has_precedence_and_prevents_the_start_if_refused(store: Store) -> None:
    directory = store.root / "summarization" / store.failing
    pinned = store.settings.model_copy(update={"releases": {"summarization": directory}})
    with pytest.raises(ReleaseError, match="canary"):
        load_at_start("summarization", announcement(store.sound[0]), pinned)
    pinned = store.settings.model_copy(
        update={"releases": {"summarization": store.root / "summarization" / store.sound[2]}}
    )
    handle = load_at_start("summarization", announcement(store.sound[0]), pinned)
    assert handle.current.version == store.sound[2]
    assert handle.pinned


@pytest.mark.parametrize(("threshold", "expected"), [(None, 0.0), (0.25, 0.25)])
def test_the_events_threshold_is_the_releases_unless_set(threshold: float | None, expected: float) -> None:
    tagger: Any = load_at_start("ner", None, Settings(post_threshold=threshold)).current.model
    assert tagger.decoding.event_below == expected


@pytest.mark.usefixtures("shipped_releases")
def test_the_canary_check_of_a_running_model_knows_its_settings() -> None:
    """Else one record on which inference fails would count as a failure of the model, and end the process."""
    live = load_at_start("ner", None, Settings(post_threshold=1.0)).current
    assert live.passes_canary()
    tagger: Any = live.model
    assert not replace(live, model=tagger.with_decoding(event_below=0.0)).passes_canary()


def test_the_release_that_was_loaded_is_kept_after_a_clock_was_set_back(store: Store, tmp_path: Path) -> None:
    settings = Settings(state=tmp_path)
    one, two, three = (open_release(store.root / "summarization" / version) for version in store.sound)
    tomorrow = time.time() + 86_400
    for release in (one, two):
        loading.keep_copy(release, settings)
        os.utime(loading.kept_folder("summarization", settings) / release.version, (tomorrow, tomorrow))
        tomorrow += 1
    loading.keep_copy(three, settings)
    assert loading.kept_versions("summarization", settings) == [two.version, three.version]


def test_processes_that_keep_the_same_release_at_once_keep_it(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    release = open_release(store.root / "summarization" / store.sound[0])
    for attempt in range(5):
        settings, together = Settings(state=tmp_path / str(attempt)), Barrier(4)

        def keep(settings: Settings = settings, together: Barrier = together) -> None:
            together.wait()
            loading.keep_copy(release, settings)

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(keep) for _ in range(4)]:
                done.result()
        open_release(loading.kept_folder("summarization", settings) / release.version)
    assert not caplog.messages
