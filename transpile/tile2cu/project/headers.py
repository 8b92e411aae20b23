"""The part of the tl headers that some texts need: found along the include graph, and written anew for vendoring."""

import functools
import hashlib
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_SIDES = ("cuda", "hip", "host")
_MACHINES = ("sm90", "cdna")  # parts for one family of GPUs: folders and files of that name
_NOT_FUNCTIONS = {"alignas", "decltype", "noexcept", "static_assert", "void"}
_KEYWORDS = {"class", "enum", "operator", "volatile"}
_MACRO_CALL = r"^[A-Z][A-Z_0-9]*\(([A-Z]\w*(?=, ))?(?:, )?([a-z]\w*)?"
_OPEN, _CLOSE = "namespace tl {", "}  // namespace tl"
ALWAYS = ("tl.h", "status.h")


class Headers:
    """The headers below `folder`/tl, by their path below it."""

    def __init__(self, folder: Path) -> None:
        root = folder / "tl"
        paths = sorted(root.rglob("*.h"))
        self.texts = {path.relative_to(root).as_posix(): path.read_text(encoding="ascii") for path in paths}

    def needed(self, texts: Iterable[str], *, sides: Collection[str], machines: Collection[str]) -> tuple[str, ...]:
        """The headers that texts need, of the sides and machines that they are for, in include order.

        A header that only includes others (tl.h) leads to those that define a name which something kept uses; any
        other header to all that it includes.
        """
        outside = list(texts)
        left_out = {name for name in self.texts if not _belongs(name, sides, machines)}
        used = set().union(*map(_identifiers, outside))
        kept = {*ALWAYS, *(name for text in outside for name in _tl_includes(text) if name in self.texts)}
        while True:
            used |= {
                name for header in kept if not self.is_umbrella(header) for name in _identifiers(self.texts[header])
            }
            more = {child for header in kept for child in self._wanted(header, used)} - kept - left_out
            if not more:
                return self._in_include_order(self._without_empty_umbrellas(kept))
            kept |= more

    def _wanted(self, header: str, used: Collection[str]) -> Iterator[str]:
        for child in self.includes(header):
            if (
                not self.is_umbrella(header)
                or self.is_umbrella(child)
                or not defines(self.texts[child]).isdisjoint(used)
            ):
                yield child

    def includes(self, header: str) -> list[str]:
        """The tl headers that a header includes, in its order."""
        found = (_resolved(header, name) for name in _includes(self.texts[header]))
        return [name for name in found if name in self.texts]

    def is_umbrella(self, header: str) -> bool:
        """Whether a header only includes others of tl."""
        if len(self.includes(header)) < len(_includes(self.texts[header])):
            return False
        code = _COMMENT.sub("", self.texts[header])
        return all(line.startswith("#") or not line.strip() for line in code.splitlines())

    def _without_empty_umbrellas(self, kept: Collection[str]) -> set[str]:
        left = set(kept)
        while empty := {
            name
            for name in left
            if self.is_umbrella(name) and name not in ALWAYS and left.isdisjoint(self.includes(name))
        }:
            left -= empty
        return left

    def _in_include_order(self, kept: Collection[str]) -> tuple[str, ...]:
        """In the order in which a compiler finishes them: a header after its includes."""
        order: dict[str, None] = {}

        def visit(name: str, above: tuple[str, ...]) -> None:
            if name in order or name in above:
                return
            for child in self.includes(name):
                if child in kept:
                    visit(child, (*above, name))
            order[name] = None

        for name in ("tl.h", *sorted(kept)):
            visit(name, ())
        return tuple(order)


def version_of(texts: Mapping[str, str]) -> str:
    """A name for the content of some headers: the namespace that keeps them apart from those of another version."""
    digest = hashlib.sha256()
    for name, text in sorted(texts.items()):
        digest.update(f"{name}\0{text}\0".encode())
    return f"v{digest.hexdigest()[:12]}"


def vendored(headers: Headers, kept: Collection[str], version: str, notice: str) -> dict[str, str]:
    """The kept headers as they are vendored: with the notice, in the version's namespace, without what is left out."""
    return {name: _vendored(headers, name, kept, version, notice) for name in kept}


def amalgamated(headers: Headers, kept: Collection[str], version: str, notice: str) -> str:
    """All kept headers as one: tl.h, with each at its first include."""
    seen: set[str] = set()

    def expanded(name: str) -> Iterator[str]:
        seen.add(name)
        yield f"// ---- tl/{name} ".ljust(120, "-")
        for line, child in _lines(headers, name, kept):
            if child and child not in seen:
                yield from expanded(child)
            elif not child and line != "#pragma once":
                yield line

    roots = ("tl.h", *beside(kept))  # what texts include
    text = _without_empty_conditions("\n".join(line for root in roots for line in expanded(root)) + "\n")
    return _comment(notice) + "#pragma once\n" + in_namespace(text, version)


def beside(kept: Collection[str]) -> list[str]:
    """The kept headers that sources include besides tl.h; each includes it."""
    return sorted(name for name in kept if name == "grid.h" or name.startswith("sm90/"))


def _vendored(headers: Headers, name: str, kept: Collection[str], version: str, notice: str) -> str:
    text = _without_empty_conditions("\n".join(line for line, _ in _lines(headers, name, kept)) + "\n")
    return _comment(notice, plain_c=text.startswith("/*")) + in_namespace(text, version)


def _lines(headers: Headers, name: str, kept: Collection[str]) -> Iterator[tuple[str, str]]:
    """The lines of a header, each with the kept header that it includes, if any; what is not kept is not included."""
    for line in headers.texts[name].splitlines():
        match = _INCLUDE.match(line)
        child = _resolved(name, match[1]) if match else ""
        if child not in headers.texts:
            yield line, ""
        elif child in kept:
            yield line, child
        elif (side := child.partition("/")[0]) in _SIDES and side not in name:
            yield f'#error "vendored without tl/{side}"', ""


def in_namespace(text: str, version: str) -> str:
    """The text with all of tl inside the inline namespace `version`."""
    return text.replace(_OPEN, f"{_OPEN} inline namespace {version} {{").replace(_CLOSE, f"}}{_CLOSE}")


def _resolved(header: str, included: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(header), included))


def _belongs(name: str, sides: Collection[str], machines: Collection[str]) -> bool:
    parts = re.split(r"[/._]", name)
    wrong_side = any(part in parts and part not in sides for part in _SIDES)
    return not wrong_side and not any(part in parts and part not in machines for part in _MACHINES)


def _comment(notice: str, *, plain_c: bool = False) -> str:
    """The notice as a comment, and a word to clang-format: the headers keep their own style in any project."""
    return f"/* {notice} */\n/* clang-format off */\n" if plain_c else f"// {notice}\n// clang-format off\n"


def _without_empty_conditions(text: str) -> str:
    """Drops each #if ... #endif that has nothing in it any more, with the comment above it."""
    return re.sub(r"(?:\n(?://[^\n]*\n)+)?\n?#if[^\n]*\n(?:#el[^\n]*\n)*#endif[^\n]*\n", "\n", text)


def _includes(text: str) -> list[str]:
    return _INCLUDE.findall(text)


def _tl_includes(text: str) -> list[str]:
    return [name.removeprefix("tl/") for name in _includes(text) if name.startswith("tl/")]


@functools.cache  # HeaderSet.needed asks about every header in every iteration
def _identifiers(text: str) -> set[str]:
    return set(_IDENTIFIER.findall(_COMMENT.sub(" ", text)))


@functools.cache
def defines(text: str) -> set[str]:
    """The names that a header declares in its namespaces, and its macros; perhaps a few more, never fewer."""
    macros = set(re.findall(r"^#define (\w+)", text, re.MULTILINE))
    code = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", "", _COMMENT.sub(" ", text), flags=re.MULTILINE)
    # A call such as TL_FUNCTION(Exp2, exp2, ...) declares what it is given first: a type, then or else a function.
    made = {name for pair in re.findall(_MACRO_CALL, code, re.MULTILINE) for name in pair}
    code = re.sub(r"^[A-Z][A-Z_0-9]*\(.*", "", code, flags=re.MULTILINE)
    names = {name for each in (made, *map(_declared, _declarations(code))) for name in each if name}
    return macros | names - _KEYWORDS


def _declarations(code: str) -> Iterator[str]:
    """The text at namespace scope, without bodies, and that in namespaces and extern "C"."""
    depth, start, text = 0, 0, []
    opened: list[bool] = []
    for place, char in enumerate(code):
        if char == "{":
            head = code[start:place] if depth == 0 else ""
            inside = depth == 0 and re.search(r"(?:\bnamespace\b[^;(]*|\bextern\s*)$", head) is not None
            opened.append(inside)
            if not inside:
                if depth == 0:
                    text.append(head)
                depth += 1
            start = place + 1
        elif char == "}" and opened:
            if not opened.pop():
                depth -= 1
            start = place + 1
        elif char == ";" and depth == 0:
            text.append(code[start:place])
            start = place + 1
    yield from text


def _declared(declaration: str) -> set[str]:
    """The name of a declaration: after class or using, before an initialiser, or before the parameters."""
    code = declaration
    while (less := re.sub(r"<[^<>]*>", " ", code)) != code:  # template heads and arguments, innermost first
        code = less
    kinds = re.findall(r"\b(?:struct|class|union|enum|using)\s+(?:alignas\s*\([^)]*\)\s*)?(\w+)", code)
    if kinds:
        return set(kinds)
    if variable := re.match(r"[^()]*?(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)", code):
        return {variable[1]}
    called = (name for name in re.findall(r"(\w+)\s*\(", code) if name not in _NOT_FUNCTIONS)
    return set(list(called)[:1])
