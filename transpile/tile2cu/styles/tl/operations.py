"""Operations of a plan as calls of headers/tl."""

from collections.abc import Mapping
from pathlib import PurePath

from msgspec.structs import replace

from tile2cu.core.instruction import MmaUnit
from tile2cu.core.program import Buffer, Reduction, Scope
from tile2cu.core.record import Record
from tile2cu.core.shared_memory import workspace_name
from tile2cu.plan import copy_ops, ops
from tile2cu.plan.claims import Executes
from tile2cu.styles.base.claims import comment, fence_comment
from tile2cu.styles.base.comments import BODY_WIDTH, listed, wrapped
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.tensor_map import TensorMap
from tile2cu.styles.base.view import StatementView, text_line
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.copies import ByThreads, ByTma, Copies
from tile2cu.styles.tl.operands import Operands
from tile2cu.styles.tl.scalars import ScalarOp, Scalars


class Operations(Record, frozen=True):
    """Prints operations."""

    printer: Printer
    operands: Operands
    copies: Copies
    scalars: Scalars

    @classmethod
    def of(cls, printer: Printer, maps: Mapping[int, TensorMap]) -> "Operations":
        """Those of a kernel; `maps` are its tensor maps, by the id of the statement that goes through one."""
        operands = Operands(printer)
        return cls(printer, operands, Copies(printer, operands, maps, {}), Scalars(printer))

    def view(self, op: ops.Op) -> StatementView:
        """The operation as one statement, under its claims."""
        match op:
            case ops.Mma():
                view = self._mma(op)
            case ops.Fill() | ops.Reduce() | ops.Scan():
                view = StatementView("call", self._call(op))
            case op if isinstance(op, ScalarOp):
                return text_line(self.scalars(op))
            case op if isinstance(op, ByTma):
                view = StatementView("call", self.copies.by_tma(op))
            case op if isinstance(op, ByThreads):
                view = StatementView("call", self.copies.by_threads(op))
            case copy_ops.StoreByInstance():
                view = self._by_instance(op)
            case ops.ProxyFence() | ops.Barrier() | ops.MmaWait():
                return self._ordering(op)
            case ops.ClearIf():
                return self._clear_if(op)
            case ops.SetRegisters():
                return text_line(self._registers(op))
            case _:
                view = text_line(self._statement(op))
        return replace(view, comments=self.claims(op))

    def claims(self, op: ops.Op) -> tuple[str, ...]:
        """What is stated above an operation."""
        awaited = isinstance(op, ops.Mma) and op.instruction.unit is MmaUnit.WARPGROUP and not op.starts
        return tuple(
            comment(claim, self.printer.names) + (_complete(claim) if awaited and isinstance(claim, Executes) else "")
            for claim in op.claims
        )

    def _call(self, op: ops.Fill | ops.Reduce | ops.Scan) -> Mapping[str, str]:
        match op:
            case ops.Fill():
                return self._fill(op)
            case ops.Reduce():
                return self._reduce(op)
            case ops.Scan():
                return self._scan(op)

    def _by_instance(self, op: copy_ops.StoreByInstance) -> StatementView:
        """A branch on what the launcher knew when it chose the kernel's instance."""
        by_tma = self.view(op.by_tma)
        inside = tuple(wrapped(" ".join(by_tma.comments), BODY_WIDTH - 2)) if by_tma.comments else ()
        condition = {"condition": f"{tl.TMA_CAN_ADDRESS}<Alignment>", "static": "yes"}
        body = replace(by_tma, comments=inside)
        return StatementView("branch", condition, body=(body,), orelse=(self.view(op.by_threads),))

    def _fill(self, op: ops.Fill) -> Mapping[str, str]:
        buffer = op.tile.buffer
        value = "" if op.clears else ", " + self.printer.text(op.value, buffer.dtype)
        template = self.operands.threads(op.threads) if buffer.scope is Scope.SHARED else ""
        return {
            "name": "clear" if op.clears else "fill",
            "template": template,
            "arguments": self.operands.tile(op.tile) + value,
        }

    def _reduce(self, op: ops.Reduce) -> Mapping[str, str]:
        arguments = [self.printer.tile(op.src), self.printer.tile(op.dst)]
        arguments += [tl.ACCUMULATE] * op.accumulates
        if op.parts > 1:
            arguments.append(self.printer.names(workspace_name(op.dst.name)))
        template = f"{op.dim}, {self.operands.threads(op.threads)}" if op.src.scope is Scope.SHARED else str(op.dim)
        name = "thread_" * op.thread_local + f"reduce_{op.kind.value}" + "_or_nan" * op.keeps_nan
        return {"name": name, "template": template, "arguments": ", ".join(arguments)}

    def _scan(self, op: ops.Scan) -> Mapping[str, str]:
        name = "cummax" if op.kind is Reduction.MAX else "cumsum"
        arguments = f"{self.printer.tile(op.src)}, {self.printer.tile(op.dst)}"
        if op.src.scope is Scope.FRAGMENT:
            arguments += f", {self.printer.names(workspace_name(op.dst.name))}"
        name = f"{name}_reversed" if op.reverse else name
        return {"name": name, "template": f"{op.dim}, {self.operands.threads(op.threads)}", "arguments": arguments}

    def mma_of_slab(self, op: ops.Mma, slab: str) -> str:
        """The arguments of the call for one slab of an MMA's operand B."""
        arguments = [self.operands.tile(op.a), self.operands.tile(op.b), self.operands.tile(op.c), slab]
        if op.overwrites or op.overwrites_if is not None:
            further = "" if op.overwrites_if is None else f" && ({self.printer.text(op.overwrites_if)})"
            arguments.append(f"{tl.OVERWRITE_IF}({slab} == 0{further})")
        return ", ".join(arguments)

    def _mma(self, op: ops.Mma) -> StatementView:
        arguments = [self.operands.tile(op.a), self.operands.tile(op.b), self.operands.tile(op.c)]
        name = "gemm_fma" if op.instruction.unit is MmaUnit.FMA else "gemm"
        if op.metadata is not None:
            name = "gemm_sparse"
            arguments.insert(1, self.operands.tile(op.metadata))
        elif op.starts:
            name = "gemm_start"
        if op.overwrites_if is not None:
            arguments.append(f"{tl.OVERWRITE_IF}({self.printer.text(op.overwrites_if)})")
        arguments += [tl.OVERWRITE] * op.overwrites
        parts = {"name": name, "template": "", "arguments": ", ".join(arguments)}
        if op.priority:
            return StatementView("prioritized", parts | {"priority": str(op.priority)})
        return StatementView("call", parts)

    def _ordering(self, op: ops.ProxyFence | ops.Barrier | ops.MmaWait) -> StatementView:
        line = op.source.span.line
        match op:
            case ops.ProxyFence():
                return text_line(f"{tl.FENCE_ASYNC_PROXY}();", line, fence_comment(op, self.printer.names))
            case ops.Barrier():
                comments = tuple(each for text in self.claims(op) for each in wrapped(text, BODY_WIDTH))
                return StatementView("barrier", {"call": self._barrier(op)}, line, comments)
            case ops.MmaWait():
                return self._mma_wait(op)

    def _barrier(self, op: ops.Barrier) -> str:
        match op.scope:
            case ops.BarrierScope.MEETING:
                return f"{tl.BARRIER_SYNC}(0, {'block_threads' if self.printer.groups > 1 else 'threads'})"
            case ops.BarrierScope.BLOCK:
                return f"{tl.SYNC_BLOCK}()"
            case ops.BarrierScope.CLUSTER:
                return f"{tl.SYNC_CLUSTER}()"
            case ops.BarrierScope.PARTICIPANTS:
                return f"{tl.SYNC_THREADS}()"
            case ops.BarrierScope.PART:
                assert op.part is not None
                if op.part.number:
                    return f"{tl.BARRIER_SYNC}({op.part.number}, {op.part.threads})"
                return f"{tl.SYNC_WARP}({op.part.lanes:#x}u{'ll' if op.part.lanes >> 32 else ''})"
            case ops.BarrierScope.CONSUMERS:
                return f"{tl.SYNC_CONSUMERS if op.fenced else tl.SYNC_READERS}<threads>()"

    def _mma_wait(self, op: ops.MmaWait) -> StatementView:
        call = f"{tl.GEMM_WAIT}<{op.pending}>({', '.join(map(self.printer.tile, op.results))});"
        if op.point is ops.WaitPoint.ISSUED:
            about = "until this MMA and those issued before it are done"
            return replace(text_line(call, op.source.span.line), comments=(about,))
        flying = [self.printer.tile(tile) for tile in op.in_flight]
        about = f"  // {listed(flying)} {'remains' if len(flying) == 1 else 'remain'} in flight" if flying else ""
        return text_line(call + about, op.source.span.line)

    def _clear_if(self, op: ops.ClearIf) -> StatementView:
        line = op.source.span.line
        clear = text_line(f"{tl.CLEAR}({self.operands.tile(op.tile)});", line)
        return StatementView("branch", {"condition": self.printer.text(op.condition)}, line, (), (clear,))

    def _registers(self, op: ops.SetRegisters) -> str:
        """The instruction, or why it is left out."""
        if not op.left_out:
            return f"{tl.WARPGROUP_REG_ALLOC if op.more else tl.WARPGROUP_REG_DEALLOC}<{op.count}>();"
        return "\n".join(f"// {line}" for text in self.claims(op) for line in wrapped(text, BODY_WIDTH))

    def _statement(self, op: ops.Op) -> str:
        match op:
            case ops.FillLocal():
                value = self.printer.text(op.value, op.buffer.dtype)
                return f"for (auto& element : {self.printer.tile(op.buffer)}) element = {value};"
            case ops.Assert():
                condition = self.printer.text(op.condition)
                return f"{tl.DEVICE_ASSERT}({condition}, {_message(op, op.message or condition)});"
            case ops.Print(what=Buffer() as what):
                return f"{tl.PRINT}({_message(op, op.message or what.name)}, {self.printer.tile(what)});"
            case ops.Print(what=what) if not isinstance(what, Buffer):
                value = self.printer.argument(what, what.dtype)
                return f"{tl.PRINT}({_message(op, op.message or self.printer.text(what))}, {value});"
            case _:
                raise TypeError(f"no text for {type(op).__name__}")


def _message(op: ops.Op, text: str) -> str:
    """A message that begins with the place in the Python file, as a string literal."""
    span = op.source.span
    return quoted(f"{PurePath(span.file).name}:{span.line}: {text}")


def quoted(text: str) -> str:
    """A string literal of C++; what is not printable ASCII is escaped byte by byte."""
    out = []
    for byte in text.encode("utf-8"):
        char = chr(byte)
        out.append(f"\\{char}" if char in '"\\' else char if 32 <= byte < 127 else f"\\{byte:03o}")
    return '"' + "".join(out).replace("??", "?\\?") + '"'


def _complete(claim: Executes) -> str:
    """That a warpgroup waits for its own MMAs; others do not."""
    groups = claim.warpgroups[0]
    others = "the other warpgroup's" if groups == 2 else "other warpgroups'"
    own = " by this warpgroup" * (groups > 1)
    return (
        f"; complete on return{f', while {others} MMAs may run' * (groups > 1)}: its operands are no longer read{own}"
    )
