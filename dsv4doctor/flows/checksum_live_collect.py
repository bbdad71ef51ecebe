"""The ranks are drained beside the load, which waits for none of it."""

from __future__ import annotations

import threading

from dsv4doctor.flows.checksum_live_ranks import LOCAL_POLL_S, Watch

# Over SSH a round costs a new channel and a Python.
_REMOTE_POLL_S = 1.0


class Collector:
    """Polls in a thread of its own, so that no request of the load waits for a drain."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        is_remote = any(rank.site.is_remote for rank in watch.ranks)
        self._poll_s = _REMOTE_POLL_S if is_remote else LOCAL_POLL_S
        self._thread = threading.Thread(target=self._run, name="probes", daemon=True)

    def __enter__(self) -> Collector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                came = self._watch.poll()
                if not came:
                    self._stop.wait(self._poll_s)
        except BaseException as failure:  # told where the thread is joined
            self._failure = failure

    def wait(self, seconds: float) -> None:
        """Watch for so long; Ctrl-C ends it early."""
        self._stop.wait(seconds)
