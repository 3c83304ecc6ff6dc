"""The exclusive right to write to a ClickHouse database, which has no locks and no transactions over tables.

The writer has a lease in the table `writer` and renews it. Each start has a higher epoch than the one before,
and the versions of all rows begin with it: what a writer still sends that has lost its lease, for example
because it was suspended, is older than what the next one writes.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

from streams.store.database import DatabaseError

#: Seconds that a lease lasts, and between two renewals.
LEASE, RENEWAL = 8.0, 2.0
#: Seconds between taking a lease and looking whether another process took it at the same moment.
SETTLING = 0.3
#: Bits of a version that count within an epoch.
COUNTED = 32
_TABLE = (
    "CREATE TABLE IF NOT EXISTS writer (one UInt8, holder String, beat UInt64, until DateTime64(3, 'UTC')) "
    "ENGINE = ReplacingMergeTree(beat) ORDER BY one"
)


class WriterLease:
    """The right to write, until `close`. Uses a client of its own, from two threads in turn."""

    def __init__(self, client: Any) -> None:
        """Waits for a lease that nobody renews; raises DatabaseError where another process holds it."""
        self._client = client
        self._holder = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._client.command(_TABLE)
        self._beat = self._acquired()
        self.epoch = self._beat >> COUNTED
        self._renewed_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="clickhouse-lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises DatabaseError where the lease is lost."""
        if time.monotonic() - self._renewed_at > LEASE - RENEWAL:
            self._renew()

    def close(self) -> None:
        """Gives the lease back; a second time does nothing."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._thread.join()
        with self._lock:
            try:
                if self._read()[0] == self._holder:
                    self._write(self._beat + 1, 0)
            finally:
                self._client.close()

    def _acquired(self) -> int:
        holder, seen, is_alive = self._read()
        beat = seen
        while is_alive:
            time.sleep(0.1)
            holder, beat, is_alive = self._read()
            if is_alive and beat != seen:
                raise DatabaseError("another process writes to this database")
        taken = ((beat >> COUNTED) + 1) << COUNTED
        self._write(taken, LEASE)
        time.sleep(SETTLING)
        holder, _, _ = self._read()
        if holder != self._holder:
            raise DatabaseError("another process writes to this database")
        return taken

    def _run(self) -> None:
        while not self._stop.wait(RENEWAL):
            try:
                self._renew()
            except Exception:
                # The next write looks itself, and says why.
                continue

    def _renew(self) -> None:
        with self._lock:
            began = time.monotonic()
            if self._read()[0] != self._holder:
                raise DatabaseError("another process writes to this database by now")
            self._beat += 1
            self._write(self._beat, LEASE)
            self._renewed_at = began

    def _read(self) -> tuple[str, int, bool]:
        """Holder, beat, and whether the lease is valid, by the server's clock."""
        rows = self._client.query("SELECT holder, beat, until > now64(3) FROM writer FINAL").result_rows
        if not rows:
            return "", 0, False
        holder, beat, is_alive = rows[0]
        return str(holder), int(beat), bool(is_alive)

    def _write(self, beat: int, seconds: float) -> None:
        until = f"now64(3) + toIntervalMillisecond({int(seconds * 1000)})"
        self._client.command(f"INSERT INTO writer SELECT 1, '{self._holder}', {beat}, {until}")
