"""The parts of an ELF file that a code object uses: segments, symbols, relocations, notes. 64-bit little-endian
only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tile2cu_runtime.amdgcn.errors import SimulatorError

MACHINE_AMDGPU = 224
SEGMENT_LOAD = 1
SECTION_SYMBOLS, SECTION_RELOCATIONS, SECTION_NOTES, SECTION_DYNAMIC_SYMBOLS = 2, 4, 7, 11


@dataclass(frozen=True)
class Segment:
    """A part of the file and its load address."""

    address: int
    content: bytes
    memory_size: int


@dataclass(frozen=True)
class Relocation:
    address: int
    kind: int
    addend: int


@dataclass(frozen=True)
class Elf:
    """The contents. `flags` are e_flags, which identify the architecture."""

    flags: int
    segments: tuple[Segment, ...]
    symbols: dict[str, int]
    relocations: tuple[Relocation, ...]
    notes: tuple[tuple[str, int, bytes], ...]

    @property
    def memory_size(self) -> int:
        return max(segment.address + segment.memory_size for segment in self.segments)


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def read_elf(data: bytes) -> Elf:
    """Reads a code object. SimulatorError for other files."""
    if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != MACHINE_AMDGPU:
        raise SimulatorError("not an AMD code object (64-bit ELF for amdgpu)")
    (flags,) = struct.unpack_from("<I", data, 48)
    sections = list(_sections(data))
    return Elf(
        flags=flags,
        segments=tuple(_segments(data)),
        symbols=dict(_symbols(data, sections)),
        relocations=tuple(_relocations(data, sections)),
        notes=tuple(_notes(data, sections)),
    )


def _segments(data: bytes) -> Iterator[Segment]:
    (table,) = struct.unpack_from("<Q", data, 32)
    entry_size, count = struct.unpack_from("<HH", data, 54)
    for number in range(count):
        kind, _, offset, address, _, file_size, memory_size, _ = struct.unpack_from(
            "<IIQQQQQQ", data, table + number * entry_size
        )
        if kind == SEGMENT_LOAD:
            yield Segment(address, data[offset : offset + file_size], memory_size)


def _sections(data: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", data, 40)
    entry_size, count = struct.unpack_from("<HH", data, 58)
    for number in range(count):
        _, kind, _, _, offset, size, link, *_ = struct.unpack_from("<IIQQQQIIQQ", data, table + number * entry_size)
        yield _Section(kind, offset, size, link)


def _symbols(data: bytes, sections: list[_Section]) -> Iterator[tuple[str, int]]:
    for section in sections:
        if section.kind in (SECTION_SYMBOLS, SECTION_DYNAMIC_SYMBOLS):
            names = sections[section.link].offset
            for entry in range(section.offset, section.offset + section.size, 24):
                name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, entry)
                end = data.index(b"\0", names + name)
                yield data[names + name : end].decode(), value


def _relocations(data: bytes, sections: list[_Section]) -> Iterator[Relocation]:
    for section in sections:
        if section.kind == SECTION_RELOCATIONS:
            for entry in range(section.offset, section.offset + section.size, 24):
                address, info, addend = struct.unpack_from("<QQq", data, entry)
                yield Relocation(address, info & 0xFFFFFFFF, addend)


def _notes(data: bytes, sections: list[_Section]) -> Iterator[tuple[str, int, bytes]]:
    for section in sections:
        if section.kind != SECTION_NOTES:
            continue
        at = section.offset
        while at < section.offset + section.size:
            name_size, content_size, kind = struct.unpack_from("<III", data, at)
            name = data[at + 12 : at + 12 + name_size].rstrip(b"\0").decode()
            content = at + 12 + -(-name_size // 4) * 4
            yield name, kind, data[content : content + content_size]
            at = content + -(-content_size // 4) * 4
