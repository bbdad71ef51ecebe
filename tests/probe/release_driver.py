"""Drives one release through store, backup, evict, load-back and read, the probe watching.

    python release_driver.py TREE PLUGIN RUN_FOLDER LAYOUT      (prints one JSON document)

TREE holds the unpacked wheel, PLUGIN what `probe install` puts on a host. Its own process, since it
fills `sys.modules`.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

TREE, PLUGIN, RUN, LAYOUT = (*map(Path, sys.argv[1:4]), sys.argv[4])
os.environ |= {
    "DSV4DOCTOR_PROBE_HERE": "1",
    "DSV4DOCTOR_PROBE_DIR": str(RUN),
    "SGLANG_PLUGINS": "dsv4doctor",
}
sys.path.insert(0, str(PLUGIN))

import release_lives as lives  # noqa: E402
import release_rig as rig  # noqa: E402
import release_tree as trees  # noqa: E402
from release_rank import Rig  # noqa: E402


def attempt(own: Rig, name: str, life: Callable[[], None]) -> None:
    """A life of which this release may lack a part: what stopped it is told."""
    try:
        life()
    except Exception as error:
        traceback.print_exc()
        own.seen[name] = {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    own = Rig(TREE, RUN, LAYOUT)
    status = own.status()
    own.seen["observes"], own.seen["pools"] = status["observes"], status["pools"]
    lives.scenario(own, "clean", pools=("index_k", "c4", "c128"))
    # Hides the method from the getter, as though the call were not in it.
    own.pool.wait_layer_transfer = lambda _layer: None
    lives.scenario(own, "ungated")
    del own.pool.wait_layer_transfer
    for at in ("device", "host", "loaded"):
        lives.scenario(own, at, at)
    lives.decoding(own)
    for hop in ("backup", "host", "host_load", "load", "read"):
        lives.perturbed(own, hop, lives.scenario)
    lives.perturbed(own, "held", functools.partial(lives.decoding, flips=False))
    attempt(own, "pd", lambda: lives.two_sides(own))
    untouched = functools.partial(lives.two_sides, flips=False)
    for hop in ("send", "arrive"):
        attempt(own, f"perturb-{hop}", functools.partial(lives.perturbed, own, hop, untouched))
    attempt(own, "tree", lambda: trees.tree_life(own))
    own.seen["server_info"] = lives.server_info(own)
    own.seen["retired"] = own.ask(command="retire")["ok"]
    own.seen["left"] = [path.name for path in RUN.iterdir()]
    own.run(own.request("z", own.allocator.alloc(rig.PAGE), 0, 100))
    print(json.dumps(own.seen))


if __name__ == "__main__":
    main()
