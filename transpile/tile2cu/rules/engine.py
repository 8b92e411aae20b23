"""The rule engine: rules state facts, the engine alone merges them, and every fact keeps its rule.

A rule is a plain function and a frozen record that declares which keys it reads and writes: it sees no others, and its
place in the order follows from them (order.py). `rules/__init__.py` lists all rules; nothing registers itself.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Any

from msgspec.structs import replace

from tile2cu.analysis.bounds import Bounds, bounds_of
from tile2cu.analysis.groups import by_groups, fragments, with_groups
from tile2cu.analysis.sync_calls import syncs_grid
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import (
    COPIED_OPERAND,
    INSTEAD,
    LOADED_OPERAND,
    ONE_THREAD_PER_ELEMENT,
    PIPELINE,
    REGISTER_OPERAND,
    SCHEDULE,
    UNSTAGED,
    WARP_SPECIALISED,
)
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.facts import Fact, Facts, Key, Place, Subject, UndeclaredError
from tile2cu.core.program import (
    Buffer,
    Gemm,
    If,
    Launch,
    Loop,
    Parallel,
    Program,
    Scope,
    Stmt,
    While,
)
from tile2cu.core.rebuild import with_instead
from tile2cu.core.record import Record
from tile2cu.core.schedule import PingPong
from tile2cu.passes import (
    AGREE_ON_BRANCHES,
    CLAIMS_OF_ASKED,
    COPY_OPERAND,
    FOR_PRODUCERS,
    GATHER_BY_PRODUCER,
    GATHER_ROWS,
    HOLD_OPERAND,
    IN_PLACE_UPDATES,
    LOAD_OPERAND,
    PREDICATE_EXITS,
    PREPARATION,
    READ_FIRST,
    SPLIT_BRANCHES,
    STAGE_THROUGH_SHARED,
    STORES_INSTEAD,
    SYNC_ITERATIONS,
    UNSTAGE_RESULTS,
    Needs,
    RejectedPass,
    Watch,
    accepted,
)
from tile2cu.passes.agree_on_branches import agreed_around
from tile2cu.passes.in_place_updates import by_one_thread_each
from tile2cu.passes.lower_tile_ops import normal_form
from tile2cu.passes.predicate_exits import exits_around
from tile2cu.passes.read_first import reads_first
from tile2cu.passes.register_operands import in_flight, in_registers, loaded
from tile2cu.passes.split_branch import split_before
from tile2cu.passes.stage_through_shared import through_shared
from tile2cu.passes.sync_iterations import with_barrier_behind
from tile2cu.rules.rule_order import groups, repeats
from tile2cu.targets import Target

Decision = tuple[Subject, Key[Any], Any]
_STAGINGS = 32  # tiles that may be staged through shared memory: each one repeats all decisions


class Phase(IntEnum):
    """The phases of decisions; within a phase the order follows from the keys of the rules (rules/rule_order.py)."""

    WARPS = 0  # how warps partition each GEMM
    STRICT = 1  # layouts that an instruction or an access fixes
    COMMON = 2  # layouts that follow from others
    FREE = 3  # layouts that nothing constrains: one tile at a time, COMMON again after each
    LOOP = 4  # how elementwise loops are distributed over threads, and how wide their accesses are
    MEMORY = 5  # predicates and alignment of global tensors
    PIPELINE = 6  # which copies are prefetched
    SYNC = 7  # where barriers are placed
    SELECT = 8  # which call does each operation
    STORAGE = 9  # the budget of shared memory and registers


class Example(Record, frozen=True):
    """A rule at work: in a kernel with these `statements`, `what` of `about` becomes `value`.

    `statements` are lines of a kernel's body; `about` is a buffer's name, a line number within them (from 1), or
    "launch"; `value` is compared as a string. The grid consists of clusters of `cluster` blocks.
    """

    statements: str
    about: str | int
    what: str
    value: str
    target: str = "cuda:sm_80"
    threads: int = 128
    cluster: int = 1


class Context(Record, frozen=True, eq=False):
    """The input of a rule. `threads` share the tiles of its subject: the threads of the block, or of a group."""

    program: Program
    launch: Launch
    target: Target
    facts: Facts
    bounds: Bounds
    threads: int
    sharing: Mapping[int, int]  # threads, by ids of statements and fragments, where groups have different sizes

    @classmethod
    def start(cls, program: Program, launch: Launch, target: Target) -> "Context":
        """The context before any decision."""
        return cls(program, launch, target, Facts(), bounds_of(launch), launch.threads, _sharing(launch))

    def of(self, subject: Subject) -> "Context":
        """The same context, restricted to the group of threads that a statement or a fragment belongs to."""
        threads = self.sharing.get(id(subject), self.launch.threads)
        return self if threads == self.threads else replace(self, threads=threads)

    def seen_by(self, rule: "Rule") -> "Context":
        """The same context, with the facts that a rule may read."""
        facts = self.facts.seen_by(rule.id, rule.keys)
        return Context(self.program, self.launch, self.target, facts, self.bounds, self.threads, self.sharing)

    @property
    def statements(self) -> tuple[Stmt, ...]:
        """Every statement of the launch, outermost first."""
        return self.launch.statements


class Rule(Record, frozen=True, eq=False):
    """`id` is `area.op.what`; `on` the kinds of subject; `source` where the reason is documented.

    A rule runs when all rules of its phase that write a key it `reads` have run; for the keys of `absent` it checks
    whether an earlier rule of the table has decided. It and the functions that it calls access no other keys.
    """

    id: str
    phase: Phase
    on: tuple[type, ...]
    apply: Callable[[Any, Context], Iterable[Decision]]
    reads: tuple[Key[Any], ...]
    absent: tuple[Key[Any], ...]
    writes: tuple[Key[Any], ...]
    source: str
    examples: tuple[Example, ...]

    @property
    def doc(self) -> str:
        return self.apply.__doc__ or ""

    @functools.cached_property
    def keys(self) -> frozenset[Key[Any]]:
        """All keys that it may access."""
        return frozenset((*self.reads, *self.absent, *self.writes))


class Elsewhere(Tile2CuError):
    """An operation accesses a fragment whose elements are in other threads than it needs."""

    op: Stmt
    tile: Buffer
    why: str

    @classmethod
    def of(cls, error: Tile2CuError, op: Stmt, tile: Buffer, why: str = "") -> "Elsewhere":
        """The diagnostic where staging fails; `why` if the reason is not that other threads hold the elements."""
        found = cls(error.code, error.message, error.span, notes=error.notes, help=error.help)
        found.op, found.tile, found.why = op, tile, why
        return found


class InDivergentCode(Tile2CuError):
    """A barrier is needed before a statement that only some threads of the block reach."""

    op: Stmt


class ReadsWhatOthersWrite(Tile2CuError):
    """A statement in which threads read elements that other threads write."""

    op: Stmt

    @classmethod
    def of(cls, op: Stmt) -> "ReadsWhatOthersWrite":
        found = cls(
            "T2C-P002", "threads read elements that others write here", op.span, help="give the value a name before it"
        )
        found.op = op
        return found


def rule(
    id: str,
    *,
    phase: Phase,
    on: type | tuple[type, ...],
    writes: tuple[Key[Any], ...],
    source: str,
    reads: tuple[Key[Any], ...] = (),
    absent: tuple[Key[Any], ...] = (),
    examples: tuple[Example, ...] = (),
) -> Callable[[Callable[[Any, Context], Iterable[Decision]]], Rule]:
    """Makes a Rule of a function from (subject, context) to decisions."""
    kinds = on if isinstance(on, tuple) else (on,)
    return lambda apply: Rule(id, phase, kinds, apply, reads, absent, writes, source, examples)


def resolve(
    program: Program, launch: Launch, target: Target, rules: tuple[Rule, ...], watch: Watch | None = None
) -> Context:
    """Runs all rules, phase by phase, until the launch has all decisions, and is rewritten where a rewrite costs less.

    Where an operation needs a fragment with another layout, the fragment is staged through shared memory, and all
    decisions are made again; so they are where registers are to keep an operand, or an MMA in flight needs a copy of
    it. Blocks that wait for one another have no producer that prefetches for its block: no TMA, and no wgmma. `watch`
    is called with every rewrite, with the launch before it and after it.
    Errors: T2C-L001 when two rules disagree, and the errors of the rules.
    """
    if syncs_grid(launch.body):
        target = replace(target, tma=False, wgmma=())
    needs = Needs(target, program.own_barriers)
    for each in PREPARATION:
        launch = each.applied(launch, needs, watch) or launch
    for each in FOR_PRODUCERS:
        rewritten = each.applied(launch, needs, watch)
        context = rewritten and _with_producer(program, rewritten, target, rules, watch)
        if context:
            return context
    return _with_gathers(program, launch, needs, rules, watch) or _decided(program, launch, target, rules, watch)


def _with_producer(
    program: Program, launch: Launch, target: Target, rules: tuple[Rule, ...], watch: Watch | None
) -> Context | None:
    """The decisions about a launch that is rewritten for a producer warp; None where it then has none."""
    try:
        context = _decided(program, launch, target, rules, watch)
    except Tile2CuError:
        if any(op.num_stages > 1 for op in statements(launch.body, Loop)):
            raise  # with fewer stages it may fit
        return None
    specialised = context.facts.get(context.launch, WARP_SPECIALISED)
    return context if specialised is not None and specialised.producer else None


def _decided(program: Program, launch: Launch, target: Target, rules: tuple[Rule, ...], watch: Watch | None) -> Context:
    """The decisions about a launch, which is rewritten where rules ask for it."""
    for _ in range(_STAGINGS):
        launch = _by_groups(launch)
        try:
            context = _decide(Context.start(program, launch, target), rules)
            asked = _asked(context)
        except (Elsewhere, InDivergentCode, ReadsWhatOthersWrite) as error:
            asked = _remedy(launch, error)
            if asked is None or not _accepted(launch, asked):
                raise
        else:
            if asked is None:
                return context
            if not _accepted(launch, asked):
                raise RejectedPass(asked[0])
        name, after = asked
        if watch is not None:
            watch(name, launch, after)
        launch = after
    return _decide(Context.start(program, launch, target), rules)


def _accepted(launch: Launch, asked: tuple[str, Launch]) -> bool:
    name, after = asked
    return accepted(name, launch, after, CLAIMS_OF_ASKED.get(name, frozenset()))


def _remedy(launch: Launch, error: Elsewhere | InDivergentCode | ReadsWhatOthersWrite) -> tuple[str, Launch] | None:
    """The rewrite after which an error does not occur: the pass's name, and the launch that it returns."""
    if isinstance(error, Elsewhere):
        staged = through_shared(launch, error.op, error.tile, error.why)
        return None if staged is None else (STAGE_THROUGH_SHARED, normal_form(staged))
    if isinstance(error, ReadsWhatOthersWrite):
        return READ_FIRST, reads_first(launch, error.op)
    if (agreed := agreed_around(launch, error.op)) is not None:
        return AGREE_ON_BRANCHES, agreed
    if isinstance(error.op, While) and (ended := with_barrier_behind(launch, error.op)) is not None:
        return SYNC_ITERATIONS, ended
    if (split := split_before(launch, error.op)) is not None:
        return SPLIT_BRANCHES, split
    predicated = exits_around(launch, error.op)
    return None if predicated is None else (PREDICATE_EXITS, predicated)


def _asked(context: Context) -> tuple[str, Launch] | None:
    """The next rewrite that rules ask for: the pass's name, and the launch that it returns; None for none."""
    launch = context.launch
    held, copied = (_with_operand(context, key) for key in (REGISTER_OPERAND, COPIED_OPERAND))
    if held is not None:
        return HOLD_OPERAND, in_registers(launch, held, held.a.buffer)
    if (tile := _stored_operand(context)) is not None:
        return LOAD_OPERAND, loaded(launch, tile)
    if copied is not None:
        return COPY_OPERAND, in_flight(launch, copied)
    if (unstaged := context.facts.get(launch, UNSTAGED)) is not None:
        return UNSTAGE_RESULTS, unstaged
    if (loop := _changing_in_place(context)) is not None:
        return IN_PLACE_UPDATES, by_one_thread_each(launch, loop)
    if found := {id(op): (copy,) for op in launch.statements if (copy := context.facts.get(op, INSTEAD))}:
        return STORES_INSTEAD, replace(launch, body=with_instead(launch.body, found))
    return None


def _with_gathers(
    program: Program, launch: Launch, needs: Needs, rules: tuple[Rule, ...], watch: Watch | None
) -> Context | None:
    """The decisions where loops that gather rows are prefetched; None where none can be, or the stages do not fit."""
    for each, by_producer in ((GATHER_BY_PRODUCER, True), (GATHER_ROWS, False)):
        gathering = each.applied(launch, needs, watch)
        if gathering is None:
            continue
        with suppress(Tile2CuError):  # diagnostics refer to the loops as the user wrote them
            context = _decided(program, gathering, needs.target, rules, watch)
            if _are_gathers_read(context, by_producer):
                return context
    return None


def _are_gathers_read(context: Context, by_producer: bool) -> bool:
    """Whether loops read rows as they are gathered: by all threads, if that suffices, or by a producer.

    Two warpgroups that alternate are the only consumers of rows that a producer gathers.
    """
    loops = [op for op in context.statements if isinstance(op, Loop)]
    pipelines = ((op, context.facts.get(op, PIPELINE)) for op in loops)
    gathered = [(op, found.producer) for op, found in pipelines if found is not None and found.gathers]
    alternate = all(isinstance(context.facts.get(op, SCHEDULE), PingPong) for op, producer in gathered if producer)
    return bool(gathered) and alternate and (not by_producer or all(producer for _, producer in gathered))


def _with_operand(context: Context, key: Key[str]) -> Gemm | None:
    """The GEMM whose A operand a fact names; the launch gets another one in its place."""
    mmas = (op for op in context.statements if isinstance(op, Gemm))
    return next((op for op in mmas if context.facts.get(op, key) == op.a.buffer.name), None)


def _stored_operand(context: Context) -> Buffer | None:
    """A shared tile that is to be loaded to registers."""
    mmas = (op for op in context.statements if isinstance(op, Gemm) and op.a.buffer.scope is Scope.SHARED)
    return next((op.a.buffer for op in mmas if context.facts.get(op, LOADED_OPERAND) is not None), None)


def _changing_in_place(context: Context) -> Parallel | None:
    """A loop of which one thread runs all iterations of an element."""
    loops = (op for op in context.statements if isinstance(op, Parallel))
    return next((op for op in loops if context.facts.get(op, ONE_THREAD_PER_ELEMENT)), None)


def _sharing(launch: Launch) -> dict[int, int]:
    """The number of threads that share each statement of a group, and each of its fragments."""
    found: dict[int, int] = {}
    for stmt, group in with_groups(launch.body) if launch.shares else ():
        found[id(stmt)] = threads = launch.threads if group is None else launch.sizes[group]
        found.update((id(tile), threads) for tile in fragments(stmt) if not isinstance(stmt, If | Loop | While))
    return found


def _by_groups(launch: Launch) -> Launch:
    """The launch, with statements outside of groups run by the threads that need them."""
    return replace(launch, body=by_groups(launch.body)) if launch.groups > 1 else launch


@functools.lru_cache
def in_order(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, ...], ...]:
    """The rules of a phase in the order of their declarations, grouped where they depend on one another."""
    return groups(rules)


@functools.lru_cache
def by_phase(rules: tuple[Rule, ...]) -> dict[Phase, tuple[Rule, ...]]:
    """The rules of each phase, in the table's order."""
    return {phase: tuple(rule for rule in rules if rule.phase is phase) for phase in Phase}


def _decide(context: Context, rules: tuple[Rule, ...]) -> Context:
    """Runs all rules, phase by phase; within a phase in the order of their declarations."""
    decider = _Decider(context)
    for phase, now in by_phase(rules).items():
        if phase is Phase.FREE:
            decider.free(now, by_phase(rules)[Phase.COMMON])
        else:
            for group in in_order(now):
                decider.ask(group)
    context.facts.sort(_ranks(rules).__getitem__)
    return context


@functools.lru_cache
def _ranks(rules: tuple[Rule, ...]) -> dict[str, int]:
    """The order in which facts are listed: that of their rules in the table, in any order of execution.

    Layouts are propagated one at a time, and are listed in that order.
    """
    ranks = {rule.id: rank for rank, rule in enumerate(rules)}
    first = min((ranks[rule.id] for rule in rules if rule.phase is Phase.COMMON), default=0)
    return ranks | {rule.id: first for rule in rules if rule.phase in (Phase.COMMON, Phase.FREE)}


class _Decider:
    """Runs rules on the subjects of a launch. Each sees the facts that it declares to read."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.subjects = _subjects(context.launch)
        self.of_kinds: dict[tuple[type, ...], list[Subject]] = {}
        self.seen: dict[Rule, Context] = {}
        self.current: set[tuple[Rule, int]] = set()  # rules and subjects of which no fact that they read has changed
        self.readers: dict[Place, set[tuple[Rule, int]]] = {}

    def ask(self, group: tuple[Rule, ...]) -> None:
        """Runs rules once; those that depend on one another until none states a new fact."""
        recomputed = repeats(group)
        while any([self._apply(rule, subject) for rule in group for subject in self.about(rule)]) and recomputed:
            pass

    def free(self, rules: tuple[Rule, ...], common: tuple[Rule, ...]) -> None:
        """One new layout at a time, which is then propagated: the first that a rule chooses, in the table's order."""
        while any(self._apply(rule, subject) for rule in rules for subject in self.about(rule)):
            for group in in_order(common):
                self.ask(group)

    def about(self, rule: Rule) -> list[Subject]:
        """The subjects of a rule."""
        if rule.on not in self.of_kinds:
            self.of_kinds[rule.on] = [subject for subject in self.subjects if isinstance(subject, rule.on)]
        return self.of_kinds[rule.on]

    def _apply(self, rule: Rule, subject: Subject) -> bool:
        """Whether a rule states a new fact; it is not asked again before a fact that it has read changes."""
        this = rule, id(subject)
        if this in self.current:
            return False
        stated = self._asked(rule, subject)
        read = self.seen[rule].facts.read_since()
        if stated.isdisjoint(read):  # else it has read what it then stated
            self.current.add(this)
            for place in read:
                self.readers.setdefault(place, set()).add(this)
        return bool(stated)

    def _asked(self, rule: Rule, subject: Subject) -> set[Place]:
        """Asks a rule about a subject; gives where it states new facts."""
        if rule not in self.seen:
            self.seen[rule] = self.context.seen_by(rule)
        stated: set[Place] = set()
        for about, key, value in rule.apply(subject, self.seen[rule].of(subject)):
            if key not in rule.writes:
                raise UndeclaredError(f"`{rule.id}` does not declare that it writes `{key.name}`")
            try:
                if self.context.facts.add(Fact(about, key, value, rule.id, subject.span)):
                    stated.add((id(about), key))
                    self.current -= self.readers.pop((id(about), key), set())
            except Tile2CuError as error:
                if isinstance(about, Buffer) and about.scope is Scope.FRAGMENT and isinstance(subject, Stmt):
                    raise Elsewhere.of(error, subject, about) from None
                raise
        return stated


def _subjects(launch: Launch) -> tuple[Subject, ...]:
    return (launch, *launch.statements)
