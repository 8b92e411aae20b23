"""What the emitter starts from: a launch of a program, and all that was decided about it."""

from dataclasses import dataclass

from tile2cu.analysis.bounds import Bounds
from tile2cu.core.facts import Facts
from tile2cu.core.program import Launch, Program
from tile2cu.targets import Target


@dataclass(frozen=True, eq=False)
class Settled:
    """One launch of a program. `namespace` is where its kernel is, empty where the program has one launch."""

    program: Program
    launch: Launch
    target: Target
    facts: Facts
    bounds: Bounds
    namespace: str = ""

    @property
    def file_namespace(self) -> str:
        """The namespace of all that the file defines next to its C functions."""
        return f"{self.program.name}_impl"

    @property
    def function(self) -> str:
        """The kernel's own name, which profilers and debuggers show without its namespaces."""
        return "_".join(filter(None, (self.program.name, self.namespace, "kernel")))
