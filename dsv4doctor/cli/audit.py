"""`dsv4doctor audit`: what is known to be bad about a launch, a server, a log or a host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dsv4doctor.cli.bounds import MAX_PULL_REQUEST
from dsv4doctor.cli.options import ApiKey, AsJson, FailOn, FailOnFlag, NoColor
from dsv4doctor.units import many

_FROM = "Where the facts come from"
_LINE_CHARS = 1200


def audit(
    launch: Annotated[
        list[str] | None,
        typer.Option(help="A launch command; repeatable.", rich_help_panel=_FROM),
    ] = None,
    server_info: Annotated[
        list[Path] | None,
        typer.Option(help="A saved /server_info; repeatable.", rich_help_panel=_FROM),
    ] = None,
    base_url: Annotated[
        list[str] | None,
        typer.Option(help="A worker's root; repeatable.", rich_help_panel=_FROM),
    ] = None,
    bootstrap_url: Annotated[
        list[str] | None,
        typer.Option(help="A prefill server's bootstrap port.", rich_help_panel=_FROM),
    ] = None,
    router_url: Annotated[
        list[str] | None,
        typer.Option(help="A router's root: its workers.", rich_help_panel=_FROM),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="A run directory of repro: its client and target.", rich_help_panel=_FROM
        ),
    ] = None,
    log: Annotated[
        list[Path] | None, typer.Option(help="A server's log; repeatable.", rich_help_panel=_FROM)
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="The SGLang tree it runs.", rich_help_panel=_FROM)
    ] = None,
    source_base: Annotated[
        Path | None,
        typer.Option(
            help="The same release unedited: shows what was edited.", rich_help_panel=_FROM
        ),
    ] = None,
    check_env: Annotated[
        Path | None,
        typer.Option(help="A pasted sglang.check_env block.", rich_help_panel=_FROM),
    ] = None,
    ssh_host: Annotated[
        list[str] | None,
        typer.Option(help="Read the server's process there; repeatable.", rich_help_panel=_FROM),
    ] = None,
    ssh_hosts: Annotated[
        list[Path] | None,
        typer.Option(help="A file of hosts, one a line.", rich_help_panel=_FROM),
    ] = None,
    ssh_config: Annotated[
        Path | None, typer.Option(help="Instead of ~/.ssh/config.", rich_help_panel=_FROM)
    ] = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE that you vouch for, as client.tools=50; repeatable."),
    ] = None,
    has: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            max=MAX_PULL_REQUEST,
            help="Number of a pull request that the build contains; repeatable.",
        ),
    ] = None,
    env_block: Annotated[
        bool, typer.Option("--env-block", help="Print what an upstream issue wants pasted.")
    ] = False,
    api_key: ApiKey = None,
    fail_on: FailOnFlag = FailOn.WARNING,
    as_json: AsJson = False,
    no_color: NoColor = False,
) -> None:
    """Known-bad combinations, each with its evidence and one next step. Reads only.

    Example: dsv4doctor audit --launch "python -m sglang.launch_server ..." --log boot.log
    """
    from dsv4doctor.cli.console import say
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.audit import AuditAsk, run_audit
    from dsv4doctor.flows.audit import env_block as block_of
    from dsv4doctor.target import parse_endpoint

    outcome = run_audit(
        AuditAsk(
            launches=tuple(launch or ()),
            server_infos=tuple(server_info or ()),
            endpoints=tuple(parse_endpoint(url, api_key=api_key) for url in base_url or ()),
            bootstraps=tuple(parse_endpoint(url) for url in bootstrap_url or ()),
            routers=tuple(parse_endpoint(url, api_key=api_key) for url in router_url or ()),
            runs=tuple(run or ()),
            logs=tuple(log or ()),
            source=source,
            source_base=source_base,
            check_env=check_env,
            ssh_hosts=tuple(ssh_host or ()),
            ssh_host_files=tuple(ssh_hosts or ()),
            ssh_config=ssh_config,
            stated=_stated(fact or []),
            has=frozenset(has or ()),
        ),
        say,
    )
    code = outcome.exit_code(Severity(fail_on.value))
    if as_json:
        _emit(outcome, code)
    elif env_block:
        typer.echo(block_of(outcome), nl=False)
    else:
        _show(outcome, no_color=no_color)
    raise typer.Exit(code)


def _stated(texts: list[str]) -> dict[str, Any]:
    from dsv4doctor.errors import UsageError

    found: dict[str, Any] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"--fact {text!r} is no NAME=VALUE", "--fact client.tools=50")
        found[name.strip()] = value.strip()
    return found


def _emit(outcome: Any, code: int) -> None:
    from dsv4doctor.cli.output import envelope, print_document

    document = envelope(
        "audit",
        outcome.verdict,
        code,
        [found.finding for found in outcome.result.findings],
        outcome.body(),
    )
    for shown, found in zip(document["findings"], outcome.result.findings, strict=True):
        shown |= {
            "grade": found.grade.value,
            "support": found.support.value,
            "subject": found.subject,
        }
    print_document(document)


def _show(outcome: Any, *, no_color: bool) -> None:
    from rich.text import Text

    from dsv4doctor.cli.console import stdout_console
    from dsv4doctor.cli.findings import print_finding
    from dsv4doctor.safetext import one_line

    console = stdout_console(no_color=no_color)
    for found in outcome.result.findings:
        finding = found.finding
        aside = f"{finding.rule} ({found.support.value}, {finding.certainty.value})"
        print_finding(console, finding, mark=found.grade.value, aside=aside)
    for line in outcome.lines():
        console.print(Text(one_line(line, _LINE_CHARS)))
    count = len(outcome.result.findings)
    open_ = len(outcome.result.not_determined)
    console.print(
        f"{many(count, 'finding')}; {many(open_, 'rule')} not determined "
        "(--json names what is missing)"
    )
