"""The constants of a kernel's text that hold the depths of its pipelines."""

from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.plan.pipelined import Depths, depths
from tile2cu.plan.resolved import Resolved
from tile2cu.styles.base.names import Names

WRITTEN_STAGES = "written_stages"  # the stages of a tile that an iteration writes while an MMA in flight reads another


class Constants(Record, frozen=True):
    """Names the depths of one launch: `depth` is the first pipeline's, numbered for others that differ."""

    depth: str
    depths: Depths
    names: Names
    inlined: str  # behind the parameters of a kernel's lambda, for compilers that need to be informed

    @classmethod
    def of(cls, resolved: Resolved, names: Names) -> "Constants":
        """`num_stages`; or `shared_stages`, where one stage more is in registers or `num_stages` is the user's."""
        found = depths(resolved)
        own = [each.value for each in resolved.program.constants if each.name == "num_stages"]
        others = found.in_registers or any(value not in found.stages[:1] for value in own)
        inlined = " TL_INLINED_LAMBDA" if resolved.target.suffix == ".hip" else ""
        return cls("shared_stages" if others else "num_stages", found, names, inlined)

    def stages(self, count: int) -> str:
        """The constant that holds a pipeline's depth."""
        order = self.depths.stages.index(count)
        return self.names.noting(self.depth if order == 0 else f"{self.depth}_{order}")

    def loads(self, count: int) -> str:
        """The constant that holds how many loads an iteration starts straight to shared memory."""
        order = self.depths.direct.index(count)
        return f"loads_per_iteration_{order}" if order else "loads_per_iteration"

    def stages_of(self, tile: Buffer, count: int) -> str:
        """The constant that holds how many stages a tile has."""
        return WRITTEN_STAGES if tile in self.depths.written else self.stages(count)
