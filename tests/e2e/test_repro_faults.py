"""Each fault of the lab, named for what it is; and what a run says of itself."""

from __future__ import annotations

from pathlib import Path

from cli_runs import UNPACED, repro


def test_an_abort_that_wedges_is_named(tmp_path: Path) -> None:
    done = repro(
        tmp_path, "--lab-fault", "abort-wedge", "--scenario", "abort-storm",
        "--sessions", "24", "--stall-timeout", "6",
    )  # fmt: skip
    assert (done.code, done.document["verdict"]) == (1, "wedged"), done.stderr
    wedge = done.body["wedge"]
    assert wedge["after"] == "abort"
    assert "abort" in wedge["detail"]
    assert wedge["abort_session"] is not None
    probes = {probe["name"]: probe for probe in wedge["probes"]}
    assert probes["/health"]["status"] == 200
    assert not probes["generation"]["answered"]
    assert wedge["gauges"]
    assert done.body["by_failure"]["stalled"] > 0
    assert any(finding["rule"] == "WEDGED" for finding in done.document["findings"])


def test_another_sessions_page_is_foreign_content(tmp_path: Path) -> None:
    done = repro(tmp_path, "--lab-fault", "foreign-page", "--sessions", "40", *UNPACED)
    assert (done.code, done.document["verdict"]) == (1, "corrupted"), done.stderr
    labels = done.body["by_label"].keys() | done.body["also_label"].keys()
    assert "foreign_content" in labels


def test_the_old_parsers_negative_number_leaks_on_a_healthy_model(tmp_path: Path) -> None:
    flags = ("--scenario", "parser-probe", "--sessions", "12", *UNPACED)
    sick = repro(tmp_path, "--lab-fault", "parser-negative-number", *flags)
    assert sick.document["verdict"] == "corrupted"
    assert sick.body["by_label"]["dsml_leak"] > 0
    healthy = repro(tmp_path, "--lab-fault", "none", *flags)
    assert (healthy.code, healthy.document["verdict"]) == (0, "clean"), healthy.body["by_label"]


def test_parallel_calls_and_long_text_are_clean_on_a_healthy_lab(tmp_path: Path) -> None:
    for scenario in ("parallel-calls", "long-text", "abort-storm", "long-context"):
        flags = ("--scenario", scenario, "--sessions", "12", *UNPACED)
        done = repro(tmp_path, "--lab-fault", "none", *flags)
        assert done.document["verdict"] == "clean", (scenario, done.body["by_label"])


def test_live_history_sends_the_models_own_replies_back(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "repro" / "tool-calls.toml").read_text(encoding="utf-8")
    scenario = tmp_path / "live.toml"
    scenario.write_text(text.replace("turns = 6", 'turns = 6\nhistory = "live"', 1))
    flags = ("--scenario", str(scenario), "--sessions", "8", *UNPACED)
    done = repro(tmp_path, "--lab-fault", "none", *flags)
    assert done.document["verdict"] == "clean", done.body["by_label"]
