"""Predicates over facts with three answers: holds, does not, not determined, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsv4doctor.audit.facts import Fact, Facts, truth, version_key
from dsv4doctor.finding import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`holds` None: not determined, for want of `missing`. `assumed` is to be checked by commit."""

    holds: bool | None
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


Check = Callable[[Facts], Answer]
NO = Answer(holds=False)


def _seen(fact: Fact) -> Evidence:
    return Evidence(where=fact.source, what=f"{fact.name} = {fact.value}")


def _absent(facts: Facts, name: str, *, default: bool) -> Answer:
    if name.startswith("env."):
        # An environment is known whole or not at all.
        return NO if facts.get("env_known") else Answer(holds=None, missing=(name,))
    if not facts.complete or name.startswith("client."):
        return Answer(holds=None, missing=(name,))
    if not default:
        return NO
    return Answer(
        holds=True, evidence=(Evidence(where=facts.subject, what=f"{name} is not given"),)
    )


def on(name: str, *, default: bool = False) -> Check:
    """A switch is set; `default`: what an absent server argument means."""

    def check(facts: Facts) -> Answer:
        fact = facts.get(name)
        if fact is None:
            return _absent(facts, name, default=default)
        answer = truth(fact.value)
        if answer is None:
            return Answer(holds=True, evidence=(_seen(fact),))
        return Answer(holds=True, evidence=(_seen(fact),)) if answer else NO

    return check


def off(name: str, *, default: bool = True) -> Check:
    """A switch is not set; `default`: whether an absent argument counts as not set."""

    def check(facts: Facts) -> Answer:
        fact = facts.get(name)
        if fact is None:
            return _absent(facts, name, default=default)
        return Answer(holds=True, evidence=(_seen(fact),)) if truth(fact.value) is False else NO

    return check


def env_on(name: str) -> Check:
    """An environment variable of the server is a true word; absent from a known environment: no."""

    def check(facts: Facts) -> Answer:
        fact = facts.get(f"env.{name}")
        if fact is None:
            known = facts.get("env_known")
            return NO if known is not None else Answer(holds=None, missing=(f"env.{name}",))
        return Answer(holds=True, evidence=(_seen(fact),)) if truth(fact.value) else NO

    return check


def one_of(name: str, *values: str, default: str | None = None) -> Check:
    """A fact is one of `values` (case aside); `default` is what an absent argument is."""
    wanted = {value.lower() for value in values}

    def check(facts: Facts) -> Answer:
        fact = facts.get(name)
        if fact is None:
            if default is not None and facts.complete:
                return _absent(facts, name, default=default.lower() in wanted)
            return _absent(facts, name, default=False)
        return Answer(holds=True, evidence=(_seen(fact),)) if _text(fact) in wanted else NO

    return check


def contains(name: str, *parts: str) -> Check:
    """A fact's text has one of `parts` in it."""

    def check(facts: Facts) -> Answer:
        fact = facts.get(name)
        if fact is None:
            return _absent(facts, name, default=False)
        hit = any(part.lower() in _text(fact) for part in parts)
        return Answer(holds=True, evidence=(_seen(fact),)) if hit else NO

    return check


def given(name: str) -> Check:
    """A fact has a value other than none."""

    def check(facts: Facts) -> Answer:
        fact = facts.get(name)
        if fact is None:
            return _absent(facts, name, default=False)
        none = _text(fact) in ("none", "null", "")
        return NO if none else Answer(holds=True, evidence=(_seen(fact),))

    return check


def above(name: str, bound: float, *, default: float | None = None) -> Check:
    """A number is greater than `bound`; `default` is what an absent argument is."""

    def check(facts: Facts) -> Answer:
        fact = facts.get(name)
        if fact is None:
            return _absent(facts, name, default=default is not None and default > bound)
        try:
            number = float(fact.value)
        except (TypeError, ValueError):
            return NO
        return Answer(holds=True, evidence=(_seen(fact),)) if number > bound else NO

    return check


def below(name: str, bound: float) -> Check:
    """A number is less than `bound`; absent is not."""

    def check(facts: Facts) -> Answer:
        fact = facts.get(name)
        if fact is None:
            return _absent(facts, name, default=False)
        try:
            number = float(fact.value)
        except (TypeError, ValueError):
            return NO
        return Answer(holds=True, evidence=(_seen(fact),)) if number < bound else NO

    return check


def version_before(bound: str) -> Check:
    """The engine's version is older than `bound`."""
    limit = version_key(bound)

    def check(facts: Facts) -> Answer:
        fact = facts.get("version")
        key = None if fact is None else version_key(str(fact.value))
        if fact is None or key is None or limit is None:
            return Answer(holds=None, missing=("version",))
        return Answer(holds=True, evidence=(_seen(fact),)) if key < limit else NO

    return check


def version_is(prefix: str) -> Check:
    """The engine's version begins with `prefix`."""

    def check(facts: Facts) -> Answer:
        fact = facts.get("version")
        if fact is None:
            return Answer(holds=None, missing=("version",))
        text = str(fact.value).lstrip("v")
        hit = text == prefix or text.startswith((prefix + ".", prefix + "+"))
        return Answer(holds=True, evidence=(_seen(fact),)) if hit else NO

    return check


def lacks(*changes: int, in_release: str | None = None, when: str = "") -> Check:
    """The build lacks the fix: told by `--has`, else by the release that has it, else by commit.

    Where only a date is known the answer holds and the build is named as to be checked.
    """

    def check(facts: Facts) -> Answer:
        if facts.has_changes & set(changes):
            return NO
        if in_release is not None:
            answer = version_before(in_release)(facts)
            if answer.holds is not None:
                return answer
        numbers = ", ".join(f"#{change}" for change in changes)
        dated = f" ({when})" if when else ""
        return Answer(holds=True, assumed=(f"whether the build contains {numbers}{dated}",))

    return check


def dated(words: str) -> Check:
    """A bound of which only a date is known: assumed to hold, to be checked by commit."""

    def check(facts: Facts) -> Answer:
        return Answer(holds=True, assumed=(f"whether {words}",))

    return check


def has(change: int) -> Check:
    """The build contains a change that brought the fault: known by `--has`, else by commit."""

    def check(facts: Facts) -> Answer:
        if change in facts.has_changes:
            told = Evidence(where="--has", what=f"#{change} is in the build")
            return Answer(holds=True, evidence=(told,))
        return Answer(holds=True, assumed=(f"whether the build contains #{change}",))

    return check


def all_of(*checks: Check) -> Check:
    """Every check holds; one that does not decides, whatever is unknown."""

    def check(facts: Facts) -> Answer:
        answers = [inner(facts) for inner in checks]
        if any(answer.holds is False for answer in answers):
            return NO
        missing = tuple(name for answer in answers for name in answer.missing)
        return Answer(
            holds=None if missing else True,
            evidence=tuple(item for answer in answers for item in answer.evidence),
            missing=missing,
            assumed=tuple(item for answer in answers for item in answer.assumed),
        )

    return check


def any_of(*checks: Check) -> Check:
    """At least one check holds; the first that does gives the evidence."""

    def check(facts: Facts) -> Answer:
        answers = [inner(facts) for inner in checks]
        for answer in answers:
            if answer.holds:
                return answer
        missing = tuple(name for answer in answers for name in answer.missing)
        return Answer(holds=None, missing=missing) if missing else NO

    return check


def not_(inner: Check, words: str) -> Check:
    """The check does not hold; `words` say what that means."""

    def check(facts: Facts) -> Answer:
        answer = inner(facts)
        if answer.holds is None:
            return answer
        if answer.holds:
            return NO
        return Answer(holds=True, evidence=(Evidence(where=facts.subject, what=words),))

    return check


def _text(fact: Fact) -> str:
    return str(fact.value).strip().lower()
