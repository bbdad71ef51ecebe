"""A watch's own Prometheus metrics: rendered after each pulse, served from a thread."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dsv4doctor.errors import UsageError
from dsv4doctor.flows.watch_rules import Pulse, State, Verdict

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "dsv4doctor_watch_"


@dataclass(slots=True)
class Counts:
    """Counters since the watch began."""

    pulses: Counter[str] = field(default_factory=Counter)
    canaries: int = 0
    corrupted: int = 0


def render(counts: Counts, pulse: Pulse, verdict: Verdict) -> str:
    """All metrics in Prometheus' text form; times are in seconds."""
    lines: list[str] = []

    def add(name: str, kind: str, *samples: tuple[str, float]) -> None:
        lines.append(f"# TYPE {_PREFIX}{name} {kind}")
        lines.extend(f"{_PREFIX}{name}{labels} {value:g}" for labels, value in samples)

    states = [(f'{{state="{s.value}"}}', float(s is verdict.state)) for s in State]
    add("state", "gauge", *states)
    add("since_timestamp_seconds", "gauge", ("", verdict.since_unix))
    add("last_pulse_timestamp_seconds", "gauge", ("", pulse.at_unix))
    if verdict.last_good_unix is not None:
        add("last_answer_timestamp_seconds", "gauge", ("", verdict.last_good_unix))
    if pulse.ttft_ms is not None:
        add("time_to_first_token_seconds", "gauge", ("", pulse.ttft_ms / 1000))
    add("pulse_seconds", "gauge", ("", pulse.seconds))
    by_state = [(f'{{state="{name}"}}', float(n)) for name, n in sorted(counts.pulses.items())]
    add("pulses_total", "counter", *by_state)
    add("canaries_total", "counter", ("", float(counts.canaries)))
    add("canaries_corrupted_total", "counter", ("", float(counts.corrupted)))
    for name, value in sorted(pulse.gauges.items()):
        add(f"server_{name.rpartition(':')[2]}", "gauge", ("", value))
    return "\n".join(lines) + "\n"


class MetricsServer:
    """Serves the latest text on every path until the block ends.

    Raises:
        UsageError: if the port cannot be listened on.
    """

    def __init__(self, port: int) -> None:
        self.text = "# no pulse yet\n"
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = served.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Scrapes are no news."""

        try:
            self._server = ThreadingHTTPServer(("", port), Handler)
        except OSError as error:
            raise UsageError(f"--port {port}: {error.strerror}", "give another port") from error
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> MetricsServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
