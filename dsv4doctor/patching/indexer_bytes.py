"""Fix (a): the V4 configurator prices index-K as the pool stores it: fp4, bf16 or fp8.

Seen: bf16 keys are stored in 256 B a c4 token and counted as 132 B, so a rank is promised more
tokens than it has bytes for. The format is detected once, in `__init__`. `DSV4PoolConfigurator`
alone is edited: the line of the same shape in the DSA path (V3.2) is right as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m

from dsv4doctor.patching.tree import (
    BYTES_FUNCTION,
    CONFIGURATOR,
    CONFIGURATOR_CLASS,
    IndexStore,
    Unrecognised,
    code_of,
    edit_methods,
    find_class,
    parse_module,
)

ATTRIBUTE = "indexer_bytes_per_token"
RUNTIME_CONTEXT = "sglang.srt.runtime_context"
_TRUE_WORDS = '("1", "true", "yes", "y", "on")'
_FP4_ARGUMENT = "enable_deepseek_v4_fp4_indexer"


def is_priced(text: str, store: IndexStore) -> bool:
    """Whether the configurator already counts the switch's format."""
    configurator = find_class(parse_module(text, CONFIGURATOR), CONFIGURATOR_CLASS)
    if configurator is None or store.switch is None:
        return False
    code = code_of(configurator)
    return store.switch in code or (store.priced_by_pool and BYTES_FUNCTION in code)


def price_as_stored(text: str, store: IndexStore) -> str:
    """The configurator's source with the fix.

    Raises:
        Unrecognised: the formula is not where every release has it, or the switch is unknown.
    """
    if store.switch is None:
        raise Unrecognised(
            "the indexer pool stores bf16 keys by a switch that is not recognised (expected an "
            "environment variable like SGLANG_DSV4_BF16_INDEX_K)"
        )
    module = parse_module(text, CONFIGURATOR)
    configurator = find_class(module, CONFIGURATOR_CLASS)
    if configurator is None:
        raise Unrecognised(f"{CONFIGURATOR} has no class {CONFIGURATOR_CLASS}")
    code = code_of(configurator)
    by_function = f"self.{ATTRIBUTE}" in code and BYTES_FUNCTION in code
    argument = _constructor_argument(configurator)
    by_server_args = f"{argument}.server_args." in code
    flag = (
        f'getattr({argument}.server_args, "{_FP4_ARGUMENT}", False)'
        if by_server_args
        else f"get_exec().kernel.{_FP4_ARGUMENT}"
    )
    edit = _Edit(store=store, flag=flag, by_function=by_function)
    fixed = edit_methods(module, CONFIGURATOR_CLASS, edit)
    if edit.prices != 1 or (not by_function and edit.uses != 1):
        raise Unrecognised(
            f"{CONFIGURATOR_CLASS} does not price index-K as any release from 0.5.12 on does"
        )
    fixed = _with_import_os(fixed)
    if store.stores_fp4 and not by_server_args:
        fixed = _with_get_exec(fixed)
    return str(fixed.code)


def _constructor_argument(configurator: cst.ClassDef) -> str:
    for statement in configurator.body.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == "__init__":
            names = [str(parameter.name.value) for parameter in statement.params.params]
            if len(names) >= 2:
                return names[1]
    raise Unrecognised(f"{CONFIGURATOR_CLASS}.__init__ takes no runner")


def _detection(store: IndexStore, flag: str, *, by_function: bool) -> cst.BaseStatement:
    """The statement that sets the stored bytes, once."""
    head = "self.indexer_head_dim"
    lines = [
        "# Index-K bytes as DeepSeekV4IndexerPool stores them.",
        f'if os.environ.get("{store.switch}", "").lower() in {_TRUE_WORDS}:',
        f"    self.{ATTRIBUTE} = {head} * 2",
    ]
    if by_function:
        fp4 = flag if store.stores_fp4 else "False"
        lines += [
            "else:",
            f"    self.{ATTRIBUTE} = {BYTES_FUNCTION}(",
            f"        {head},",
            f"        {fp4},",
            "    )",
        ]
    else:
        if store.stores_fp4:
            lines += [f"elif {flag}:", f"    self.{ATTRIBUTE} = {head} // 2 + {head} // 32"]
        lines += ["else:", f"    self.{ATTRIBUTE} = {head} + {head} // 128 * 4"]
    module = cst.parse_module("\n".join(lines) + "\n")
    first = module.body[0]
    assert isinstance(first, cst.If)
    # The leading comment belongs to the module's header; it moves to its statement.
    return first.with_changes(leading_lines=module.header)


class _Edit:
    """Sets the bytes in `__init__` and makes the formula use them; counts what it changed."""

    def __init__(self, *, store: IndexStore, flag: str, by_function: bool) -> None:
        self.statement = _detection(store, flag, by_function=by_function)
        self.by_function = by_function
        self.blank: tuple[cst.EmptyLine, ...] = ()  # that stood above the removed block size
        self.prices = 0
        self.uses = 0

    def __call__(
        self, method: str, statements: Sequence[cst.BaseStatement]
    ) -> Sequence[cst.BaseStatement]:
        changed: list[cst.BaseStatement] = []
        for statement in statements:
            if method == "__init__":
                changed += self._in_init(statement)
            elif self.by_function:
                changed.append(statement)
            else:
                changed += self._in_formula(statement)
        return changed

    def _in_init(self, statement: cst.BaseStatement) -> list[cst.BaseStatement]:
        anchor = ATTRIBUTE if self.by_function else "indexer_head_dim"
        if not m.matches(statement, _assigns_self(anchor)):
            return [statement]
        self.prices += 1
        if not self.by_function:
            return [statement, self.statement]
        # The release's own remark on what it prices goes with the line it explained.
        return [self.statement]

    def _in_formula(self, statement: cst.BaseStatement) -> list[cst.BaseStatement]:
        if m.matches(statement, _assigns("quant_block_size")):
            self.blank = tuple(getattr(statement, "leading_lines", ()))
            return []
        priced = m.matches(statement, _assigns("indexer_bytes")) and "//" in code_of(statement)
        if not priced:
            return [statement]
        self.uses += 1
        if self.blank:
            statement = statement.with_changes(leading_lines=self.blank)
        line = cst.parse_statement(f"indexer_bytes = self.{ATTRIBUTE}")
        assert isinstance(line, cst.SimpleStatementLine)
        return [statement.with_changes(body=line.body)]


def _assigns(name: str) -> m.SimpleStatementLine:
    return m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=m.Name(name))])])


def _assigns_self(name: str) -> m.SimpleStatementLine:
    target = m.Attribute(value=m.Name("self"), attr=m.Name(name))
    return m.SimpleStatementLine(body=[m.Assign(targets=[m.AssignTarget(target=target)])])


def _with_get_exec(module: cst.Module) -> cst.Module:
    """`module` with `get_exec` among what it imports from the runtime context.

    Raises:
        Unrecognised: it imports nothing from there.
    """
    for number, statement in enumerate(module.body):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        line = statement.body[0]
        if not isinstance(line, cst.ImportFrom) or line.module is None:
            continue
        if code_of(line.module) != RUNTIME_CONTEXT or isinstance(line.names, cst.ImportStar):
            continue
        edited = line.with_changes(names=_with_name(line.names, "get_exec"))
        body = list(module.body)
        body[number] = statement.with_changes(body=[edited])
        return module.with_changes(body=body)
    raise Unrecognised(f"{CONFIGURATOR} imports nothing from {RUNTIME_CONTEXT}")


def _with_name(names: Sequence[cst.ImportAlias], name: str) -> list[cst.ImportAlias]:
    """`names` with `name` in its place by the alphabet, commas as they are."""
    known = [code_of(alias.name) for alias in names]
    if name in known:
        return list(names)
    place = next((i for i, other in enumerate(known) if other > name), len(known))
    if place == len(known):
        last = names[-1].with_changes(comma=names[0].comma)
        return [*names[:-1], last, cst.ImportAlias(name=cst.Name(name), comma=names[-1].comma)]
    fresh = cst.ImportAlias(name=cst.Name(name), comma=names[0].comma)
    return [*names[:place], fresh, *names[place:]]


def _with_import_os(module: cst.Module) -> cst.Module:
    """`import os` beside the standard library's imports, unless it is there."""
    body = list(module.body)
    place = None
    for number, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        code = code_of(statement).strip()
        if code == "import os":
            return module
        if place is None and code.startswith(("import ", "from ")) and "__future__" not in code:
            place = number
        if code.startswith("import ") and code < "import os":
            place = number + 1
    line = cst.parse_statement("import os\n")
    body.insert(len(body) if place is None else place, line)
    return module.with_changes(body=body)
