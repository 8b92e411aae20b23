"""Imports of files that are next to the user's: read and evaluated like the file itself, only when a name is needed."""

import functools
import posixpath
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from tile2cu.core.errors import Tile2CuError
from tile2cu.files import python_text
from tile2cu.frontend.context import Context
from tile2cu.frontend.parse import MAX_CHARACTERS, source_file
from tile2cu.frontend.scope import Env
from tile2cu.frontend.values import Deferred, Instance, Opaque

MAX_FILES = 16
PROJECT = "pyproject.toml"  # in the folder of a project
FOLDER = "__path__"  # the name under which a module's scope keeps its folder, relative to the user's file

Reader = Callable[[str], str | None]


def reader_beside(path: Path | None) -> Reader:
    """Reads files by their path relative to the user's file, each once; None for those that are not there."""

    @functools.cache  # each trace of a kernel asks for all modules that the file imports
    def read(name: str) -> str | None:
        if path is None or not path.is_file():
            return None
        try:
            found = path.parent / name
            return python_text(found.read_bytes()) if found.stat().st_size <= MAX_CHARACTERS else None
        except (OSError, LookupError, SyntaxError, ValueError):
            return None

    return read


def resolve(cx: Context, wanted: Deferred) -> object:
    """The module or the name that an import denotes; opaque where no such file is next to it."""
    seen: set[tuple[str, str, str | None]] = set()
    found: object = wanted
    while isinstance(found, Deferred):
        key = (found.folder, found.module, found.name)
        if key in seen:  # imports in a circle
            return Opaque(found.name or found.module)
        seen.add(key)
        found = _step(cx, found)
    return found


def _step(cx: Context, wanted: Deferred) -> object:
    """One step on the way: a value, or the import that the module has under the name."""
    env = _module(cx, wanted, wanted.module)
    if wanted.name is None:
        return _missing(cx, wanted, None) if env is None else Instance(wanted.module, env.values)
    if env is not None and wanted.name in env.values:
        return env.values[wanted.name]
    inner = _module(cx, wanted, f"{wanted.module}.{wanted.name}".lstrip("."))
    if inner is not None:
        return Instance(wanted.name, inner.values)
    star = env.values.get("*") if env is not None else None
    return replace(star, name=wanted.name) if isinstance(star, Deferred) else _missing(cx, wanted, env)


def _missing(cx: Context, wanted: Deferred, module: Env | None) -> Opaque:
    """A name of a module that is not next to the file, or has no such name."""
    what = "has no such name" if module is not None else "is no file next to this one"
    return Opaque(wanted.name or wanted.module, cx.here, Tile2CuError("T2C-F008", f"`{wanted.module}` {what}"))


def _module(cx: Context, wanted: Deferred, module: str) -> Env | None:
    """The scope of a module: next to the file that imports it or, of an absolute name, where its package is."""
    found = _beside(cx, wanted.folder, module)
    return _of_own_package(cx, module) if found is None and wanted.absolute else found


def _of_own_package(cx: Context, module: str) -> Env | None:
    """The scope of a module by its full name, in the package that the user's file is in: `package.part.module`.

    Folders between them need no `__init__.py`. A file outside of its project's package, as a test is, has it in the
    folder of pyproject.toml, or in `src` there.
    """
    for up, folder in enumerate(Path(cx.source.file).absolute().parents):
        if folder.name == module.partition(".")[0]:
            return _beside(cx, posixpath.join(*[".."] * (up + 1)), module)
        root = posixpath.join(".", *[".."] * up)
        if cx.read(posixpath.join(root, PROJECT)) is not None:
            return _beside(cx, posixpath.join(root, "src"), module) or _beside(cx, root, module)
    return None


def _beside(cx: Context, folder: str, module: str) -> Env | None:
    """The scope of a module in a folder after its file was read, once for each Context."""
    base = posixpath.normpath(posixpath.join(folder, *module.split(".")))
    for name, inside in ((f"{base}.py", posixpath.dirname(base)), (posixpath.join(base, "__init__.py"), base)):
        if name not in cx.modules:
            cx.modules[name] = None  # while it is read: an import in a circle finds nothing
            cx.modules[name] = _read(cx, name, inside)
        if cx.modules[name] is not None:
            return cx.modules[name]
    return None


def _read(cx: Context, name: str, folder: str) -> Env | None:
    if sum(env is not None for env in cx.modules.values()) >= MAX_FILES:
        return None
    text = cx.read(name)
    if text is None:
        return None
    try:
        source = source_file(str(Path(cx.source.file).parent / name), text)
    except Tile2CuError:
        return None  # a file that is not Python binds nothing
    cx.source.attach(source)
    env = Env(declares=True, values={"__name__": name, FOLDER: folder})
    cx.run_module(cx, source.module.body, env)
    return env
