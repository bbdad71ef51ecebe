"""The prefill's bootstrap server: `GET /route`, free of any key, as SGLang has it.

All four ranks -1 ask for the deployment as a whole, which a decode engine, or a doctor, may compare
with its own. This HTTP server and the bootstrap thread that takes requests are two things: the one
answers while the other is dead.
"""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from dsv4doctor.lab.http_json import json_response
from dsv4doctor.lab.layouts import PAGE_TOKENS

_RANKS = ("prefill_dp_rank", "prefill_cp_rank", "target_tp_rank", "target_pp_rank")
# How the pages of this engine's index pool lie.
PLANAR = "page_planar"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapServer:
    """One rank's worth of a bootstrap server."""

    rank_ip: str
    rank_port: int
    http_port: int

    def application(self) -> web.Application:
        app = web.Application()
        app.add_routes([web.get("/route", self._route), web.get("/health", _ok)])
        return app

    async def _route(self, http: web.Request) -> web.Response:
        try:
            ranks = [int(http.query[name]) for name in _RANKS]
        except (KeyError, ValueError):
            return web.Response(text="Missing inputs for bootstrap server.", status=400)
        if all(rank == -1 for rank in ranks):
            return json_response(
                {
                    "attn_tp_size": 1,
                    "attn_cp_size": 1,
                    "dp_size": 1,
                    "pp_size": 1,
                    "page_size": PAGE_TOKENS,
                    "kv_cache_dtype": "fp8_e4m3",
                    "follow_bootstrap_room": True,
                    "kv_layout": "v4",
                    "index_k_layout": PLANAR,
                    "prefill_http_port": self.http_port,
                }
            )
        if any(ranks):
            return web.Response(text="Bootstrap info not Found", status=404)
        return json_response({"rank_ip": self.rank_ip, "rank_port": self.rank_port})


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="OK")
