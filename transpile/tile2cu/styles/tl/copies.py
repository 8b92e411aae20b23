"""Copies and tile atomics as calls of headers/tl."""

from collections.abc import Mapping

from tile2cu.core.program import Buffer
from tile2cu.core.record import Record
from tile2cu.plan import copy_ops
from tile2cu.styles.base.expressions import Printer
from tile2cu.styles.base.tensor_map import TensorMap, store_dims
from tile2cu.styles.tl import vocabulary as tl
from tile2cu.styles.tl.operands import Operands

ByTma = copy_ops.TmaLoad | copy_ops.TmaCopy | copy_ops.TmaStoreShared | copy_ops.TmaStore | copy_ops.TmaReduceAdd
ByThreads = (
    copy_ops.Copy
    | copy_ops.GatherRows
    | copy_ops.CopyToBlock
    | copy_ops.LoadRegisters
    | copy_ops.StoreRegisters
    | copy_ops.AtomicUpdate
)
_COPIES = {copy_ops.CopyMechanism.THREADS: "copy", copy_ops.CopyMechanism.CP_ASYNC: "copy_async"}


class Copies(Record, frozen=True):
    """Prints copies. By the id of the statement: `maps` are tensor maps, `registers` what a tile waits in."""

    printer: Printer
    operands: Operands
    maps: Mapping[int, TensorMap]
    registers: dict[int, str]

    def by_threads(self, op: ByThreads) -> Mapping[str, str]:
        """The call of a copy that threads do."""
        operands = self.operands
        match op:
            case copy_ops.Copy():
                return self._copy(op)
            case copy_ops.GatherRows():
                return self._gather(op)
            case copy_ops.CopyToBlock():
                arguments = [self.printer.index(op.block), operands(op.src), operands(op.dst)]
                if op.arrives_at is not None:
                    assert isinstance(op.arrives_at.buffer, Buffer)
                    arguments.append(self.printer.element(op.arrives_at.buffer, op.arrives_at.indices))
                return _call("copy_to_block", *arguments, template=operands.threads(op.threads))
            case copy_ops.LoadRegisters():
                name = "load_buffer" if op.buffer.always else "load"
                return _call(name, operands(op.src), self.registers[id(op.source)])
            case copy_ops.StoreRegisters():
                return _call("store", self.registers[id(op.source)], operands(op.dst))
            case copy_ops.AtomicUpdate():
                template = operands.threads(op.threads)
                return _call(op.kind.atomic, operands(op.src), operands(op.dst), template=template)

    def by_tma(self, op: ByTma) -> Mapping[str, str]:
        """The call of a copy that goes through a tensor map."""
        view, operands = self.maps[id(op.source)], self.operands
        match op:
            case copy_ops.TmaLoad():
                place = operands.coordinates(op.src)
                arguments = [view.name, place, self.printer.tile(op.dst), self._arrival(op)]
                if not op.multicast:
                    return _call("tma_load", *arguments)
                return _call("tma_load_for", f"{tl.BLOCKS}<{op.multicast:#b}>", *arguments)
            case copy_ops.TmaCopy():
                return self._tma_copy(op, view)
            case copy_ops.TmaStoreShared():
                return _call("tma_copy", operands.tile(op.src), view.name, operands.coordinates(op.dst))
            case copy_ops.TmaStore():
                name = "tma_store_start" if op.outstanding else "tma_store"
                tile = self.printer.tile(op.src)
                tile = f"{tl.TRANSPOSED}({tile})" if op.transposed else tile
            case copy_ops.TmaReduceAdd():
                name, tile = "tma_add_start", self.printer.tile(op.src)
        staging, place = self.printer.names(op.staging), operands.coordinates(op.dst)
        return _call(name, tile, staging, view.name, place, template=store_dims(view))

    def by_slab(self, op: copy_ops.TmaLoad, slab: str, full: str) -> str:
        """The arguments of the call that loads one slab of a tile."""
        place, tile = self.operands.coordinates(op.src), self.printer.tile(op.dst)
        return ", ".join((self.maps[id(op.source)].name, place, tile, slab, full))

    def _copy(self, op: copy_ops.Copy) -> Mapping[str, str]:
        src, dst = self.operands(op.src), self.operands(op.dst)
        arguments = [f"{tl.EVICT[op.evict]}({src})" if op.evict else src, dst]
        if op.streaming:
            arguments.append(" && ".join(f"{self.printer.text(extent)} == 1" for extent in op.streaming))
        name = _COPIES[op.mechanism] + ("" if op.streaming is None else "_once")
        return _call(name, *arguments, template=self.operands.threads(op.threads))

    def _gather(self, op: copy_ops.GatherRows) -> Mapping[str, str]:
        return _call("copy_rows_async", *self._rows(op), template=self.operands.threads(op.threads))

    def gathered(self, op: copy_ops.GatherRows) -> str:
        """The call that finds the rows of a producer's thread."""
        return f"{tl.GATHERED_ROWS}({', '.join(self._rows(op))})"

    def _rows(self, op: copy_ops.GatherRows) -> list[str]:
        """The tensor, the tile, where each row begins, and which are copied."""
        printer = self.printer
        head = f"[&](int {printer.names(op.row.name)})"
        place = ", ".join(map(printer.index, op.coordinates))
        arguments = [
            printer.names(op.tensor.name),
            self.operands.tile(op.dst),
            f"{head} {{ return {tl.AT}({place}); }}",
        ]
        if op.when is not None:
            arguments.append(f"{head} {{ return {printer.condition(op.when)}; }}")
        return arguments

    def _tma_copy(self, op: copy_ops.TmaCopy, view: TensorMap) -> Mapping[str, str]:
        assert isinstance(op.barrier.buffer, Buffer)
        place = self.operands.coordinates(op.src)
        barrier = self.printer.element(op.barrier.buffer, op.barrier.indices)
        arguments = [view.name, place, self.operands.tile(op.dst), barrier]
        arguments += [f"{tl.BLOCKS}<{op.blocks:#b}>"] * bool(op.blocks)
        return _call("copy_to_blocks" if op.awaited else "tma_copy", *arguments)

    def _arrival(self, op: copy_ops.TmaLoad) -> str:
        """The barrier at which a load arrives."""
        if not op.own_ring:
            return "prologue_full" if op.prologue else "full"
        return self.printer.names(f"__{op.dst.name}_full")


def _call(name: str, *arguments: str, template: str = "") -> Mapping[str, str]:
    return {"name": name, "template": template, "arguments": ", ".join(arguments)}
