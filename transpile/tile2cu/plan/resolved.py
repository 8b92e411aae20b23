"""What the emitter starts from: a launch of a program, and all that was decided about it."""

import functools
from collections.abc import Callable, Mapping

from tile2cu.analysis.bounds import Bounds
from tile2cu.analysis.uses import statements, users
from tile2cu.core.decisions import AWAITED_AT, PIPELINE, RETIRED, ROW_ALIGNMENT, ROW_ALIGNMENT_IF, SCHEDULE
from tile2cu.core.expr import Expr, Var
from tile2cu.core.facts import Facts
from tile2cu.core.program import Buffer, Gemm, Launch, Loop, Program, Stmt
from tile2cu.core.rebuild import Body
from tile2cu.core.record import Record
from tile2cu.core.schedule import InOrder, Multiple, Pipeline, Retirement, Schedule, implied
from tile2cu.plan.grid_schedule import GridSchedule
from tile2cu.targets import Target


class Resolved(Record, frozen=True, eq=False):
    """One launch of a program. `namespace` is where its kernel is, empty where the program has one launch.

    `required` are the multiples that the launcher requires of sizes, for any of its launches; `grid_schedule` has the
    values of sizes that the launcher and its kernels share, if there are any. `decide` gives the kernel's launches with
    other values of its parameters, or raises Tile2CuError; None where its text is not at hand. `named` has, by its id,
    a statement with names for values that it repeats, behind their declarations (plan/named_values.py).
    """

    program: Program
    launch: Launch
    target: Target
    facts: Facts
    bounds: Bounds
    namespace: str = ""
    required: tuple[Multiple, ...] = ()
    grid_schedule: GridSchedule | None = None
    decide: "Callable[[Mapping[str, int]], tuple[Resolved, ...]] | None" = None
    named: Mapping[int, Body] = {}

    def row_alignment(self, tensor: Buffer) -> int:
        """The bytes that the rows of a tensor start at multiples of; 0 where only a run-time check can tell.

        What the launcher requires for another launch holds in this one as well. Prefetched vectors are loaded by
        single elements.
        """
        if self._loads_elements(tensor):
            return max(1, tensor.dtype.bytes)
        condition = self.facts.get(tensor, ROW_ALIGNMENT_IF)
        given = condition is not None and implied(condition, self.required)
        return condition.of * tensor.dtype.bits // 8 if given and condition else self.facts[tensor, ROW_ALIGNMENT]

    def _loads_elements(self, tensor: Buffer) -> bool:
        """Whether each access to a tensor loads a vector that a pipelined loop prefetches to registers."""
        copies = [copy for each in self.schedules if isinstance(each, InOrder) for copy in each.copies]
        loaded = [copy for copy in copies if copy.src.buffer is tensor]
        return bool(loaded) and len(users(self.launch.body, tensor)) == len(loaded)

    @functools.cached_property
    def scheduled(self) -> Mapping[Var, Expr]:
        """The kernel's variables that are members of the grid's schedule, with their values over sizes."""
        return self.grid_schedule.of_kernel(self.launch, self.facts) if self.grid_schedule is not None else {}

    @property
    def file_namespace(self) -> str:
        """The namespace of all that the file defines next to its C functions."""
        return f"{self.program.name}_impl"

    @property
    def function(self) -> str:
        """The kernel's own name, which profilers and debuggers show without its namespaces."""
        return "_".join(filter(None, (self.program.name, self.namespace, "kernel")))

    @functools.cached_property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedules of the launch's loops."""
        found = (self.facts.get(loop, SCHEDULE) for loop in statements(self.launch.body, Loop))
        return tuple(each for each in found if each is not None)

    @functools.cached_property
    def pipelines(self) -> tuple[tuple[Loop, Pipeline], ...]:
        """The launch's loops with prefetched loads, and their pipelines."""
        found = ((loop, self.facts.get(loop, PIPELINE)) for loop in statements(self.launch.body, Loop))
        return tuple((loop, pipeline) for loop, pipeline in found if pipeline is not None)

    @functools.cached_property
    def waits(self) -> Mapping[tuple[int, bool], Retirement]:
        """The MMAs that retire before a statement, given by its id, or behind it."""
        return {(id(wait.at), wait.behind): wait.retirement for each in self.schedules for wait in each.waits}

    def is_in_flight(self, op: Gemm) -> bool:
        """Whether an MMA is only started at its statement, and awaited by another one."""
        of_schedule = any(op is mma for each in self.waits.values() for mma in each.mmas)
        return of_schedule or any(self.facts.get(op, key) is not None for key in (AWAITED_AT, RETIRED))

    def defers(self, op: Stmt) -> bool:
        """Whether each thread adds up its own elements only at a reduction, until the loop around it has ended."""
        return any(each.running is not None and each.running.reduce is op for each in self.schedules)
