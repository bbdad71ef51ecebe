"""A chat server of a known pace, which logs when it really sent: the truth a bench is held to.

    python paced.py [--tokens-per-s 55] [--first-ms 200] [--tokens N]

Answers `/v1/chat/completions` with the passage that the prompt asks for, one piece of it an event,
one event an HTTP chunk, each stream at its own pace from its own arrival. With `--tokens-per-s 0`
everything is sent as fast as the socket takes it. `/log` gives, and then forgets, one object a
reply: the request's id, when it arrived, when each piece was sent (seconds of the wall clock), its
pieces. One thread, no event loop and blocking sends: about 15 us an event, so that the server is
not what is measured. Prints its port and ends at the end of stdin.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import re
import select
import socket
import sys
import time
from dataclasses import dataclass, field

MODEL = "paced"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
PASSAGE = re.compile(r"Passage `([^`]+)`: (.*?) End of passage `\1`", re.DOTALL)
ASKED = re.compile(r"passage called `([^`]+)`")
# Pieces as long as those of a byte-pair tokenizer.
PIECES = re.compile(r" ?[^\W_]{1,5}| ?[^\w\s]|[\s\S]")
# Between two looks at who has something to say, so that a fast server stays a listener.
SENDS_A_TURN = 64
OTHERWISE = "The harbour was quiet, and nobody had asked for a passage that morning."


@dataclass
class Stream:
    """One reply under way."""

    connection: socket.socket
    request_id: str
    arrived: float
    pieces: list[bytes]
    tail: bytes
    next_piece: int = 0
    sent: list[float] = field(default_factory=list)


@dataclass
class Server:
    gap_s: float
    first_s: float
    tokens: int | None
    listener: socket.socket
    poll: select.epoll
    inputs: dict[int, bytearray] = field(default_factory=dict)
    connections: dict[int, socket.socket] = field(default_factory=dict)
    due: list[tuple[float, int, Stream]] = field(default_factory=list)
    log: list[dict] = field(default_factory=list)
    count: int = 0

    def serve(self) -> None:
        while True:
            wait = max(0.0, self.due[0][0] - time.perf_counter()) if self.due else -1
            for descriptor, _ in self.poll.poll(wait):
                if descriptor == 0:
                    if not os.read(0, 4096):
                        return
                elif descriptor == self.listener.fileno():
                    self.accept()
                else:
                    self.read(descriptor)
            for _ in range(SENDS_A_TURN):
                if not self.due or self.due[0][0] > time.perf_counter():
                    break
                self.send(*heapq.heappop(self.due))

    def accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections[connection.fileno()] = connection
        self.inputs[connection.fileno()] = bytearray()
        self.poll.register(connection.fileno(), select.EPOLLIN)

    def read(self, descriptor: int) -> None:
        connection, held = self.connections[descriptor], self.inputs[descriptor]
        try:
            received = connection.recv(1 << 16)
        except OSError:
            received = b""
        if not received:
            self.close(connection)
            return
        held += received
        end = held.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(held[:end]).lower()
        length = re.search(rb"content-length: (\d+)", head)
        whole = end + 4 + (int(length[1]) if length else 0)
        if len(held) >= whole:
            body = bytes(held[end + 4 : whole])
            del held[:whole]
            self.answer(connection, head, body)

    def close(self, connection: socket.socket) -> None:
        descriptor = connection.fileno()
        self.poll.unregister(descriptor)
        del self.connections[descriptor], self.inputs[descriptor]
        self.due = [each for each in self.due if each[2].connection is not connection]
        heapq.heapify(self.due)
        connection.close()

    def answer(self, connection: socket.socket, head: bytes, body: bytes) -> None:
        if head.startswith(b"post"):
            self.begin(connection, head, json.loads(body))
            return
        if head.startswith(b"get /log"):
            document, self.log = self.log, []
        elif head.startswith(b"get /v1/models"):
            document = {"data": [{"id": MODEL, "owned_by": "sglang"}]}
        else:
            plain(connection, b"404 Not Found", {})
            return
        plain(connection, b"200 OK", document)

    def begin(self, connection: socket.socket, head: bytes, body: dict) -> None:
        texts = reply_to(body)
        limit = self.tokens or body.get("max_tokens") or len(texts)
        if self.tokens:
            texts = (texts * (1 + limit // len(texts)))[:limit]
        is_cut = len(texts) > limit
        usage = {"prompt_tokens": 100, "completion_tokens": len(texts[:limit])}
        named = re.search(rb"x-request-id: (\S+)", head)
        stream = Stream(
            connection=connection,
            request_id=named[1].decode() if named else "",
            arrived=time.time(),
            pieces=[event({"content": text}) for text in texts[:limit]],
            tail=event({}, "length" if is_cut else "stop")
            + chunk(b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n")
            + chunk(b"data: [DONE]\n\n")
            + END,
        )
        connection.sendall(HEAD + event({"role": "assistant", "content": ""}))
        self.plan(time.perf_counter() + self.first_s, stream)

    def plan(self, due: float, stream: Stream) -> None:
        self.count += 1  # streams are not ordered; their number is
        heapq.heappush(self.due, (due, self.count, stream))

    def send(self, due: float, _number: int, stream: Stream) -> None:
        try:
            # Taken before: a pause behind the call would put it after the piece's own arrival.
            sent = time.time()
            stream.connection.sendall(stream.pieces[stream.next_piece])
            stream.sent.append(sent)
            stream.next_piece += 1
            if stream.next_piece == len(stream.pieces):
                # Logged first: who has read the last byte may ask for the log.
                self.log.append(
                    {"id": stream.request_id, "arrived": stream.arrived, "sent": stream.sent}
                )
                stream.connection.sendall(stream.tail)
                return
        except OSError:
            return  # the client hung up; its socket is closed when that is read
        self.plan(due + self.gap_s, stream)


def reply_to(body: dict) -> list[str]:
    """The pieces of the passage that is asked for."""
    text = "\n".join(str(message.get("content")) for message in body["messages"])
    asked = ASKED.search(text)
    passages = dict(PASSAGE.findall(text))
    return PIECES.findall(passages.get(asked[1] if asked else "", OTHERWISE))


def event(delta: dict, finish: str | None = None) -> bytes:
    """About as long as SGLang's, nulls and all."""
    filled = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None, **delta}
    choice = {"index": 0, "delta": filled, "logprobs": None, "finish_reason": finish,
              "matched_stop": None}  # fmt: skip
    document = {
        "id": "9f8e7d6c5b4a39281706f5e4d3c2b1a0", "object": "chat.completion.chunk",
        "created": 1795939200, "model": MODEL, "choices": [choice], "usage": None,
    }  # fmt: skip
    return chunk(b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def plain(connection: socket.socket, status: bytes, document: object) -> None:
    body = json.dumps(document).encode()
    head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    connection.sendall(head % (status, len(body)) + body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens-per-s", type=float, default=55.0)
    parser.add_argument("--first-ms", type=float, default=200.0)
    parser.add_argument("--tokens", type=int)
    args = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    poll = select.epoll()
    poll.register(0, select.EPOLLIN)
    poll.register(listener.fileno(), select.EPOLLIN)
    print(listener.getsockname()[1], flush=True)
    gap_s = 1 / args.tokens_per_s if args.tokens_per_s else 0.0
    Server(
        gap_s=gap_s, first_s=args.first_ms / 1000, tokens=args.tokens, listener=listener, poll=poll
    ).serve()


if __name__ == "__main__":
    sys.exit(main())
