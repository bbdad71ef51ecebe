"""The heartbeat that keeps the deadmen of a site quiet."""

from __future__ import annotations

import threading

from dsv4doctor.deploy.site import Site
from dsv4doctor.errors import DoctorError

# At least so many heartbeats fit into the deadman's patience, and so seldom at most.
BEATS_PER_LIMIT = 5
SLOWEST_BEAT_S = 20.0


class Heart:
    """Beats in a thread while the context lasts; `problem` is what the last beat met."""

    def __init__(self, site: Site, limit_s: float) -> None:
        self._site = site
        self._interval_s = min(SLOWEST_BEAT_S, limit_s / BEATS_PER_LIMIT)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self.problem: DoctorError | None = None

    def __enter__(self) -> Heart:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                self._site.beat()
                self.problem = None
            except DoctorError as error:
                self.problem = error
