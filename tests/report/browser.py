"""A real headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)
# A browser starts in a second on an idle machine; a drowning one gets sixty.
LIMIT_S = 60
MESSAGE_BYTES = 128 * 1024 * 1024


class Page:
    """One page in one browser. `console` and `requests`: what it has said and asked for so far."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._next = 0
        self.console: list[str] = []
        self.requests: list[str] = []
        self.blocked: list[str] = []

    def start(self) -> None:
        self._loop.run_until_complete(self._connect())
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        async def end() -> None:
            await self._socket.close()
            await self._session.close()

        self._loop.run_until_complete(end())
        self._loop.close()

    def open(self, url: str, *, width: int = 1280, height: int = 900) -> float:
        """Load `url`; the seconds until its load event."""
        self.resize(width, height)
        began = time.monotonic()
        self._loaded = False
        self.call("Page.navigate", url=url)
        self._loop.run_until_complete(self._until_loaded())
        return time.monotonic() - began

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def media(self, **features: str) -> None:
        """Emulate media features, such as `prefers_color_scheme="dark"`, or `media="print"`."""
        medium = features.pop("media", "")
        pairs = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.call("Emulation.setEmulatedMedia", media=medium, features=pairs)

    def run(self, script: str) -> Any:
        """The value of `script` in the page, awaited if it is a promise."""
        done = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def type(self, selector: str, text: str) -> None:
        """Put the focus on an element and type `text` as a keyboard would."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        codes = {"Enter": 13, "Tab": 9, "ArrowRight": 39, "ArrowDown": 40}
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key],
            )  # fmt: skip

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        made = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(made["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One protocol command and its result; events that come meanwhile are kept."""
        return self._loop.run_until_complete(self._call(method, parameters))

    async def _connect(self) -> None:
        self._session = aiohttp.ClientSession()
        root = f"http://127.0.0.1:{self._port}"
        async with self._session.get(f"{root}/json/list") as answer:
            targets = await answer.json()
        page = next(target for target in targets if target["type"] == "page")
        self._socket = await self._session.ws_connect(
            page["webSocketDebuggerUrl"], max_msg_size=MESSAGE_BYTES
        )

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._next += 1
        number = self._next
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async with asyncio.timeout(LIMIT_S):
            while True:
                message = await self._socket.receive_json()
                if message.get("id") == number:
                    assert "error" not in message, message
                    return message["result"]
                self._event(message)

    async def _until_loaded(self) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not self._loaded:
                self._event(await self._socket.receive_json())

    def _event(self, message: dict[str, Any]) -> None:
        method, told = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.consoleAPICalled":
            self.console.append(json.dumps(told["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(told["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(told["entry"]["text"])
        elif method == "Network.loadingFailed":
            self.blocked.append(told.get("blockedReason", told["errorText"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Page]:
    """A page in a browser of its own, gone in the end."""
    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        page = Page(_port(process, profile / "DevToolsActivePort"))
        page.start()
        yield page
        page.close()
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def _port(process: subprocess.Popen[bytes], file: Path) -> int:
    """The port that the browser wrote down when it was ready."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "chromium ended"
        if file.exists() and (lines := file.read_text().splitlines()):
            return int(lines[0])
        time.sleep(0.02)
    raise AssertionError(f"chromium was not ready within {LIMIT_S} s")
