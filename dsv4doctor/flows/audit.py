"""`audit`: gather facts from every source named, evaluate all rules, tell bad from unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsv4doctor.audit.evaluate import AuditResult, by_severity, evaluate
from dsv4doctor.audit.facts import Fact, Facts, gather_facts
from dsv4doctor.audit.rule import AuditFinding
from dsv4doctor.errors import COULD_NOT_RUN, EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, UsageError
from dsv4doctor.finding import Severity
from dsv4doctor.flows import audit_sources as sources
from dsv4doctor.flows.audit_logs import facts_of_log
from dsv4doctor.flows.audit_router import facts_of_router
from dsv4doctor.flows.audit_run import facts_of_run
from dsv4doctor.flows.audit_tree import TreeAudit, audit_tree
from dsv4doctor.flows.size_sources import read_lines
from dsv4doctor.redact import REDACTED, is_secret_name, redact_text

if TYPE_CHECKING:
    from dsv4doctor.target import Endpoint

CLEAN, FOUND = "clean", "findings"
Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAsk:
    """What the command line named; `stated` are facts that the person vouches for."""

    launches: tuple[str, ...] = ()
    server_infos: tuple[Path, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    bootstraps: tuple[Endpoint, ...] = ()
    routers: tuple[Endpoint, ...] = ()
    runs: tuple[Path, ...] = ()
    logs: tuple[Path, ...] = ()
    source: Path | None = None
    source_base: Path | None = None
    check_env: Path | None = None
    ssh_hosts: tuple[str, ...] = ()
    ssh_host_files: tuple[Path, ...] = ()
    ssh_config: Path | None = None
    stated: Mapping[str, Any] = field(default_factory=dict)
    has: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """What came of one host: `unknown` is what was asked and it did not tell."""

    host: str
    error: str | None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOutcome:
    subjects: tuple[Facts, ...]
    result: AuditResult
    hosts: tuple[HostAnswer, ...]
    tree: TreeAudit | None = None

    @property
    def verdict(self) -> str:
        if self._is_unanswered:
            return COULD_NOT_RUN
        grave = any(f.finding.severity is not Severity.INFO for f in self.result.findings)
        return FOUND if grave else CLEAN

    @property
    def _is_unanswered(self) -> bool:
        """Hosts were all that was asked, and none told anything."""
        nothing_else = not self.subjects and self.tree is None
        return nothing_else and bool(self.hosts) and all(host.error for host in self.hosts)

    def exit_code(self, fail_on: Severity) -> int:
        if self._is_unanswered:
            return EXIT_COULD_NOT
        grave = any(f.finding.severity.rank >= fail_on.rank for f in self.result.findings)
        return EXIT_FINDINGS if grave else EXIT_DONE

    def lines(self) -> tuple[str, ...]:
        """What a person should see beside the findings: what a tree and the hosts told at all."""
        said = [] if self.tree is None else [self.tree.line()]
        for host in self.hosts:
            if host.unknown:
                said.append(f"{host.host} did not tell: {', '.join(host.unknown)}")
        return tuple(said)

    def body(self) -> dict[str, Any]:
        """The contract's `audit` object: facts with their sources, what is not determined."""
        return {
            "facts": [
                {
                    "subject": facts.subject,
                    "name": fact.name,
                    "value": _shown(fact.name, fact.value),
                    "source": fact.source,
                }
                for facts in self.subjects
                for fact in facts.known.values()
                if fact.name != "env_known"
            ],
            "not_determined": [
                {"rule": item.rule, "subject": item.subject, "missing": list(item.missing)}
                for item in self.result.not_determined
            ],
            "hosts": [asdict(host) for host in self.hosts],
            "source": None if self.tree is None else self.tree.body(),
        }


def _shown(name: str, value: Any) -> Any:
    """A fact's value as it may be printed: secrets by name or form are hidden."""
    if is_secret_name(name.removeprefix("env.")):
        return REDACTED
    if isinstance(value, str):
        return redact_text(value)
    return value if isinstance(value, int | float | bool) else redact_text(str(value))


def run_audit(ask: AuditAsk, note: Note) -> AuditOutcome:
    """The audit of everything that `ask` names.

    Raises:
        UsageError: nothing named, or something that cannot be read.
        DoctorError: a server that does not answer.
    """
    tree = _tree(ask, note)
    stated = _stated(ask, tree)
    subjects = _named_subjects(ask, stated)
    hosts = _ssh_subjects(ask, stated, subjects, note)
    troubles: list[AuditFinding] = []
    for path in ask.logs:
        facts, found = facts_of_log(path, stated, ask.has)
        subjects.append(facts)
        troubles += found
    if not subjects and stated:
        groups = [("stated", sources.with_family(stated))]
        subjects.append(gather_facts("stated", groups, complete=False, has_changes=ask.has))
    if not subjects and not hosts:
        raise UsageError(
            "nothing to audit is named",
            '--launch "…", --server-info FILE, --base-url URL, --log FILE, --run RUN_DIR, '
            "--source DIR or --ssh-host HOST",
        )
    if tree is not None:
        subjects = [_with_release(facts, tree) for facts in subjects]
    result = evaluate(subjects)
    of_tree = tree.findings if tree is not None else ()
    findings = by_severity([*of_tree, *troubles, *result.findings])
    return AuditOutcome(
        subjects=tuple(subjects),
        result=AuditResult(findings=findings, not_determined=result.not_determined),
        hosts=tuple(hosts),
        tree=tree,
    )


def _stated(ask: AuditAsk, tree: TreeAudit | None) -> dict[str, Any]:
    """What holds for every subject: the person's own words, then a tree's, then check_env's."""
    stated = dict(ask.stated)
    if tree is not None:
        stated = {**tree.facts, **stated}
    if ask.check_env is not None:
        text = "".join(read_lines(ask.check_env, "--check-env"))
        stated = {**sources.facts_of_check_env(text), **stated}
    return stated


def _named_subjects(ask: AuditAsk, stated: Mapping[str, Any]) -> list[Facts]:
    """One subject each launch, file, server and run that is named."""
    has = ask.has
    return [
        *(
            sources.facts_of_command(command, number, stated, has)
            for number, command in enumerate(ask.launches, start=1)
        ),
        *(
            sources.facts_of_server_info(
                sources.read_server_info_file(path), str(path), stated, has
            )
            for path in ask.server_infos
        ),
        *(sources.facts_of_url(endpoint, stated, has) for endpoint in ask.endpoints),
        *(sources.facts_of_bootstrap(endpoint, has) for endpoint in ask.bootstraps),
        *(facts_of_router(endpoint, has) for endpoint in ask.routers),
        *(facts_of_run(path, stated, has) for path in ask.runs),
    ]


def _tree(ask: AuditAsk, note: Note) -> TreeAudit | None:
    if ask.source is None:
        if ask.source_base is not None:
            raise UsageError("--source-base alone compares nothing", "--source DIR beside it")
        return None
    return audit_tree(ask.source, ask.source_base, note)


def _with_release(facts: Facts, tree: TreeAudit) -> Facts:
    """The tree's release, for a subject that does not say its own."""
    if tree.release is None or facts.get("version") is not None:
        return facts
    fact = Fact(name="version", value=tree.release, source=str(tree.package))
    return replace(facts, known={**facts.known, "version": fact})


def _ssh_subjects(
    ask: AuditAsk, stated: Mapping[str, Any], subjects: list[Facts], note: Note
) -> list[HostAnswer]:
    """Adds one subject a server process of each host; a host's failure is its own."""
    if not ask.ssh_hosts and not ask.ssh_host_files:
        return []
    from dsv4doctor.flows.audit_host import facts_of_host
    from dsv4doctor.hosts.fanout import fan_out
    from dsv4doctor.hosts.inventory import parse_host, read_inventory
    from dsv4doctor.hosts.ssh import SshTransport

    answers = fan_out(
        [str(host) for host in read_inventory(ask.ssh_hosts, ask.ssh_host_files)],
        lambda host: SshTransport(parse_host(host), config_file=ask.ssh_config),
        lambda transport: facts_of_host(transport, stated, ask.has),
    )
    told: list[HostAnswer] = []
    for answer in answers:
        found = answer.answer
        problem = answer.problem
        if found is not None and not found.subjects:
            problem = "no server process runs there"
        if problem is not None:
            note(f"{answer.host}: {problem}")
        if found is not None:
            subjects += found.subjects
        unknown = () if found is None else found.unknown
        told.append(HostAnswer(host=answer.host, error=problem, unknown=unknown))
    return told


def env_block(outcome: AuditOutcome) -> str:
    """What an upstream issue wants pasted: versions, arguments and switches, secrets left out."""
    lines = []
    for facts in outcome.subjects:
        lines.append(f"# {facts.subject}")
        for name in sorted(facts.known):
            if name != "env_known":
                lines.append(
                    f"{name.removeprefix('env.')}: {_shown(name, facts.known[name].value)}"
                )
    return "\n".join(lines) + "\n"
