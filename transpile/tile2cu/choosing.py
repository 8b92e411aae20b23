"""From a file and sizes to the setting of its tile parameters: the front end, the rules and the chooser together."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from math import inf
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from tile2cu.analysis.uses import statements
from tile2cu.chooser.choose import Decision, NoModel, Ranking, choose, is_modelled, leading, measured
from tile2cu.chooser.counts import Counter, Work
from tile2cu.chooser.model import Schedule
from tile2cu.chooser.numbers import Unknown
from tile2cu.chooser.same_work import same_work
from tile2cu.chooser.space import Kind, Parameter, Space, size_values, space_of, space_with
from tile2cu.chooser.work import counters_of
from tile2cu.core.choice import Candidate, Choice, Setting, named
from tile2cu.core.decisions import INSTRUCTION, SCHEDULE, SHARED_BUDGET, STORE_STAGING, WARP_SPECIALISED
from tile2cu.core.errors import Note, Tile2CuError
from tile2cu.core.expr import Var
from tile2cu.core.program import Buffer, Gemm, Loop, Program
from tile2cu.core.record import Record
from tile2cu.core.schedule import MmaInFlight
from tile2cu.files import read_python, relative_to
from tile2cu.frontend import default_numbers, programs
from tile2cu.rules import RULES, Context, resolve
from tile2cu.targets import Target
from tile2cu.targets.costs import COSTS, Costs
from tile2cu.tool import this_tool
from tile2cu.tuning import record
from tile2cu.tuning.decided import Decided
from tile2cu.uncollected import uncollected

_SPACE = "parameters"  # what is known of a kernel besides its settings
_PROBED_SIZE = 1024  # for which counts of a kernel with open sizes are compared
_KEPT = 64


class Tunable(Record, frozen=True, kw_only=True):
    """A kernel of a file with values for some of its arguments, whose tile parameters are to be set.

    `text` is the file's; `bindings` the values, in their order.
    """

    path: Path
    text: str
    kernel: str | None
    target: Target
    bindings: tuple[tuple[str, object], ...]

    @cached_property
    def program(self) -> Program:
        """The kernel with the values of its file. Raises Tile2CuError."""
        return self._traced(dict(self.bindings))

    @cached_property
    def space(self) -> Space:
        """The tile parameters that have no value among the bindings.

        `bound` sizes are open in its program, except where Python code of the file decides by them what is computed.
        """
        given = {name: value for name, value in self.bindings if name not in self.bound}
        if (known := self._known.get(_SPACE)) is not None:
            program = self._traced(given) if known["open"] and self.bound else self.program
            return space_with(program, tuple(map(_parameter, known["parameters"])))
        program = self._traced(given) if self.bound else self.program
        if self.bound and not self._does_the_same(program):
            given, program = dict(self.bindings), self.program
        defaults = default_numbers(self.path, self.text, program.alias_of or program.name)
        free = {name: value for name, value in defaults.items() if name not in given}
        found = space_of(program, free, lambda setting: self._traced({**given, **setting}), _probed_sizes(program))
        parameters = [[each.name, each.default, each.kind.name, each.keys] for each in found.parameters]
        self._new[_SPACE] = {"bound": [*self.bound], "open": program is not self.program, "parameters": parameters}
        return found

    def _does_the_same(self, open_: Program) -> bool:
        """Whether the program with open sizes has the same work as the one with `bound` ones."""
        with suppress(Unknown):
            return _counted(open_, self.bound) == _counted(self.program, self.bound)
        return True

    @cached_property
    def bound(self) -> dict[str, int]:
        """The sizes that have a value among the bindings, where the kernel takes them at run time as well."""
        found: dict[str, int] = {}
        values: dict[str, Any] = dict(self.bindings)
        if (known := self._known.get(_SPACE)) is not None:
            return {name: values[name] for name in known["bound"]}
        for name, value in self.bindings:
            if type(value) is int:
                others = {each: values[each] for each in values if each != name and each not in found}
                with suppress(Tile2CuError):
                    if any(size.name == name for size in self._traced(others).sizes):
                        found[name] = value
        return found

    @cached_property
    def others(self) -> record.Bindings:
        """The bindings that are no sizes."""
        return record.sorted_bindings({name: value for name, value in self.bindings if name not in self.bound})

    @property
    def costs(self) -> Costs:
        """The constants of the target's GPU. Raises NoModel where none was measured."""
        if self.target.name not in COSTS:
            raise NoModel(f"there are no measured constants for {self.target.name}")
        return COSTS[self.target.name]

    def ranking(self, sizes: Mapping[str, int]) -> Ranking:
        """The settings for these run-time sizes. Raises NoModel, and Tile2CuError as the file's own setting does."""
        costs = self.costs
        if why := is_modelled(self.program):
            raise NoModel(why)
        if not self.space.parameters:
            raise NoModel("it has no parameter that decides its tiles alone")
        return Ranking(self.space, {**self.bound, **sizes}, costs, self.decide, self.target.shared_limit)

    def choice(self, sizes: Mapping[str, int]) -> Choice:
        """The setting for these run-time sizes: as it was measured, else as the model predicts. Raises as `ranking`."""
        if (tuned := _measured((self,), sizes)) is not None:
            return tuned[1]
        return self.predicted_choice(sizes)

    @uncollected()
    def predicted_choice(self, sizes: Mapping[str, int]) -> Choice:
        """The setting for these run-time sizes as the model predicts it. Raises as `ranking`."""
        choice = choose(self.ranking(sizes), self.costs, {**self.bound, **sizes})
        self.keep()
        return choice

    def predicted(self, setting: Setting, sizes: Mapping[str, int]) -> float | None:
        """The predicted microseconds of a setting; None where the model has none."""
        try:
            return self.ranking(sizes).time_of(dict(setting)).us
        except (NoModel, Tile2CuError):
            return None

    def decide(self, setting: Mapping[str, int]) -> Decision:
        """What the rules decide of the launches with a setting, once for a file, as `keep` saves it.

        Raises Tile2CuError.
        """
        key = tuple(setting.items())
        if key not in self._decisions:
            known = self._known.get(named(key))
            try:
                self._decisions[key] = self._decided(setting) if known is None else _decision(known)
            except Tile2CuError as error:
                self._decisions[key] = error
                if known is None and setting != self.space.default:  # of which the user sees the whole error
                    self._new[named(key)] = {"code": error.code, "message": error.message}
        found = self._decisions[key]
        if isinstance(found, Tile2CuError):
            raise found
        return found

    def _decided(self, setting: Mapping[str, int]) -> Decision:
        program = self.traced(setting)
        contexts = [resolve(program, launch, self.target, RULES) for launch in program.launches]
        schedules = tuple(map(_schedule, contexts))
        if not self._is_counted(program, setting):
            return Decision(schedules=schedules, counted=partial(_of_sizes, program, counters_of(program)))
        self._new[named(tuple(setting.items()))] = {"schedules": [asdict(each) for each in schedules]}
        return Decision(schedules=schedules)

    def _is_counted(self, program: Program, setting: Mapping[str, int]) -> bool:
        """Whether the space counts the work of the program with a setting, for all sizes that it leaves open."""
        setting = {**self.space.default, **setting}
        with suppress(Unknown):
            if same_work(self.space.program, program, self.space.values(setting, {})):
                return True
            if not program.sizes and not any(isinstance(param, Var) for param in program.params):
                return _counted(program, {}) == self.space.works(setting, self.bound)
        return False

    @cached_property
    def _decisions(self) -> dict[Setting, Decision | Tile2CuError]:
        return {}

    def keep(self) -> None:
        """Saves what was found out since the last time in the user's cache, for other processes."""
        if self._new and self._identity:
            _cache().add(self._identity, self._new)
            self._new.clear()

    @cached_property
    def _known(self) -> dict[str, Any]:
        """What other processes have found out: the parameters, and decisions by their settings."""
        return _cache().of(self._identity) if self._identity else {}

    @cached_property
    def _new(self) -> dict[str, object]:
        return {}

    @cached_property
    def _identity(self) -> str:
        """A hash over all that decides the space and the decisions; empty where a binding is no plain value."""
        if not all(value is None or isinstance(value, str | int | float) for _, value in self.bindings):
            return ""
        source = self.program.source
        about = [this_tool().sha256, source.sha256, source.imports, self.kernel, repr(self.target), self.bindings]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

    def traced(self, setting: Mapping[str, int]) -> Program:
        """The program with a setting. Raises Tile2CuError."""
        return self._traced({**dict(self.bindings), **setting})

    def _traced(self, bindings: Mapping[str, object]) -> Program:
        (program, *_) = programs(self.path, self.text, kernel=self.kernel, bindings=bindings, target=self.target)
        return program


def _cache() -> Decided:
    """The user's cache; one that keeps nothing where the user has no folder for it."""
    from tile2cu_runtime.paths import cache_dir

    try:
        return Decided(cache_dir() / "decided.sqlite3")
    except RuntimeError:  # of Path.home
        return Decided(None)


def _parameter(content: Sequence[Any]) -> Parameter:
    name, default, kind, keys = content
    return Parameter(name=name, default=default, kind=Kind[kind], keys=tuple(keys))


def _decision(content: Mapping[str, Any]) -> Decision:
    """What is known of a setting. Raises Tile2CuError where the rules rejected it."""
    if "code" in content:
        raise Tile2CuError(content["code"], content["message"])
    return Decision(schedules=tuple(Schedule(**each) for each in content["schedules"]))


def _counted(program: Program, sizes: Mapping[str, int]) -> tuple[Work, ...]:
    return _of_sizes(program, counters_of(program), sizes)


def _of_sizes(program: Program, counters: Sequence[Counter], sizes: Mapping[str, int]) -> tuple[Work, ...]:
    values = size_values(program, sizes)
    return tuple(count(values) for count in counters)


def _probed_sizes(program: Program) -> dict[str, int]:
    scalars = [param for param in program.params if isinstance(param, Var)]
    return {var.name: _PROBED_SIZE for var in program.sizes} | {var.name: 1 for var in scalars}


def _schedule(context: Context) -> Schedule:
    gemms = [*statements(context.launch.body, Gemm)]
    instructions = [context.facts.get(gemm, INSTRUCTION) for gemm in gemms]
    specialised = context.facts.get(context.launch, WARP_SPECIALISED)
    schedules = [context.facts.get(loop, SCHEDULE) for loop in statements(context.launch.body, Loop)]
    return Schedule(
        wgmma=any(str(each).startswith("wgmma") for each in instructions),
        producer=specialised is not None and specialised.producer,
        shared_bytes=int(context.facts[context.launch, SHARED_BUDGET].total),
        overlapped=any(each is not None for each in schedules),
        staged=bool(context.facts.get(context.launch, STORE_STAGING)),
        held=int(any(isinstance(each, MmaInFlight) for each in schedules)),
    )


def family_of(
    path: Path, kernel: str | None, target: Target, bindings: Mapping[str, object], others: Sequence[str]
) -> tuple[Tunable, ...]:
    """The kernel of a file and those of other files, named from its folder, that compute the same.

    Errors: T2C-C023 where their arguments differ.
    """
    files = [path, *(path.parent / other for other in others)]
    names = [kernel, *(None for _ in others)]
    members = [
        tunable(file, read_python(file), name, target, bindings) for file, name in zip(files, names, strict=True)
    ]
    first = members[0]
    for member in members[1:]:
        if _interface(member.program) != _interface(first.program):
            ours, theirs = (", ".join(map(str, _interface(each.program))) for each in (first, member))
            raise Tile2CuError(
                "T2C-C023",
                f"`{first.path.name}` and `{member.path.name}` do not take the same arguments",
                member.program.span,
                notes=(Note(f"{first.path.name}: {ours}"), Note(f"{member.path.name}: {theirs}")),
                help="a family has the same tensors and scalars, in the same order",
            )
    return tuple(members)


def _interface(program: Program) -> list[str]:
    """The arguments in words: names, types, and ranks of tensors."""
    return [
        f"{param.name} ({param.dtype}, {param.rank} dimensions)"
        if isinstance(param, Buffer)
        else f"{param.name} ({param.dtype})"
        for param in program.params
    ]


def _measured(members: Sequence[Tunable], sizes: Mapping[str, int]) -> tuple[int, Choice] | None:
    """The member and its setting as `tile2cu tune` measured them, where NAME.tune.json beside one is about all of them.

    That is, about these files as they are, this target, sizes and parameters. Of a family a member alone takes the best
    of its own settings.
    """
    for first in members:
        file = record.read(record.place_of(first.path, first.program.name))
        if file is None or (file.target, file.sha256) != (first.target.name, first.program.source.sha256):
            continue
        entry = file.find(record.sorted_sizes({**first.bound, **sizes}), first.others)
        if entry is None:
            continue
        current = {first.path.name: file.sha256, **dict(entry.family)}
        names = {relative_to(each.path, first.path): place for place, each in enumerate(members)}
        if any(current.get(name) != members[place].program.source.sha256 for name, place in names.items()):
            continue
        best, default = entry.of_files(names), tuple(first.space.default.items())
        if best is None or entry.us_of(Candidate(first.path.name, default)) is None:
            continue
        place = names[best.file]
        default = tuple(members[place].space.default.items())
        times = {figure.setting: figure.us for figure in entry.figures if figure.file == best.file}
        return place, measured(entry.card, entry.sizes, times, best.setting, default, of=len(entry.figures))
    return None


@uncollected()
def fastest(members: Sequence[Tunable], sizes: Mapping[str, int]) -> tuple[int, Choice | None]:
    """The member of a family that is fastest, and its setting: as they were measured, else as the model predicts.

    The first where the model predicts none.
    """
    if (tuned := _measured(members, sizes)) is not None:
        return tuned
    found: list[tuple[float, int, Callable[[], Choice]]] = []
    for place, member in enumerate(members):
        with suppress(NoModel):
            if (own := _measured([member], sizes)) is not None:
                found.append((own[1].us, place, partial(_second, own)))
                continue
            ranking = member.ranking(sizes)
            us = leading(ranking, below=min((us for us, *_ in found), default=inf)).us
            found.append((us, place, partial(choose, ranking, member.costs, {**member.bound, **sizes})))
    if not found:
        return 0, None
    _, place, choice = min(found, key=lambda each: each[:2])
    chosen = choice()
    for member in members:
        member.keep()
    return place, chosen


def _second(pair: tuple[int, Choice]) -> Choice:
    return pair[1]


def predicted_times(members: Sequence[Tunable], sizes: Mapping[str, int]) -> tuple[tuple[str, float], ...]:
    """The file of each member that the model predicts, with the time of its best setting."""
    found: list[tuple[str, float]] = []
    for member in members:
        with suppress(NoModel):
            found.append((member.path.name, member.choice(sizes).us))
    return tuple(found)


def implied_tiles(path: Path, text: str, kernel: str | None, target: Target, bindings: Mapping[str, object]) -> str:
    """ "auto" where the model chooses another setting than the file's and nothing keeps it from doing so.

    That is, sizes are among the bindings and none is open, and no parameter with an integer default has a value. A file
    that fixes its sizes itself is left as it is.
    """
    if not any(type(value) is int for value in bindings.values()):
        return "default"
    made = tunable(path, text, kernel, target, bindings)
    program = made.program
    defaults = default_numbers(path, text, program.alias_of or program.name)
    if program.sizes or any(name in bindings for name in defaults) or not made.bound:
        return "default"
    try:
        choice = made.choice({})
    except NoModel:
        return "default"
    return "default" if choice.setting == choice.default else "auto"


@lru_cache(maxsize=_KEPT)
def _kept(tunable: Tunable) -> Tunable:
    return tunable


def tunable(path: Path, text: str, kernel: str | None, target: Target, bindings: Mapping[str, object]) -> Tunable:
    """A kernel to be chosen for; the same one for the same arguments, so that its space is found once a process."""
    made = Tunable(path=path, text=text, kernel=kernel, target=target, bindings=tuple(bindings.items()))
    try:
        return _kept(made)
    except TypeError:  # a value that cannot be hashed, as a list
        return made
