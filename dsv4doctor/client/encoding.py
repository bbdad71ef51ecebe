"""Content encodings of a body -> plain bytes, in bounded memory."""

from __future__ import annotations

import zlib

# Largest piece handed on at once, so that a compressed bomb is met by the body limit.
PIECE_BYTES = 1024 * 1024


class EncodingError(ValueError):
    """The body is not in the encoding that its header names, or in one that we do not read."""


class Decoder:
    """Decodes a gzip or deflate body chunk by chunk. We ask for `identity`; some servers insist."""

    def __init__(self, encoding: str) -> None:
        self._name = encoding.strip().lower()
        if self._name not in {"gzip", "x-gzip", "deflate"}:
            raise EncodingError(f"content-encoding {encoding!r}, though identity was asked for")
        # 32 + 15: zlib or gzip header, recognised by itself.
        self._inflater = zlib.decompressobj(47)
        self._is_first = True

    def decode(self, chunk: bytes) -> list[bytes]:
        """The plain pieces that `chunk` gives.

        Raises:
            EncodingError: if the body is not what its header says.
        """
        pieces = []
        rest = chunk
        while rest:
            try:
                piece = self._inflate(rest)
            except zlib.error as error:
                raise EncodingError(f"broken {self._name} body: {error}") from error
            if piece:
                pieces.append(piece)
            rest = self._inflater.unconsumed_tail
        return pieces

    def _inflate(self, data: bytes) -> bytes:
        try:
            return self._inflater.decompress(data, PIECE_BYTES)
        except zlib.error:
            # "deflate" is sent raw by some servers, without the zlib header of the standard.
            if not self._is_first or self._name != "deflate":
                raise
            self._inflater = zlib.decompressobj(-15)
            return self._inflater.decompress(data, PIECE_BYTES)
        finally:
            self._is_first = False


def decoder_for(encoding: str | None) -> Decoder | None:
    """None when the body is plain.

    Raises:
        EncodingError: if the encoding is one that we do not read.
    """
    if not encoding or encoding.strip().lower() == "identity":
        return None
    return Decoder(encoding)
