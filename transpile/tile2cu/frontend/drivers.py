"""Command lines of drivers: argparse, whose defaults are the values that a kernel is called with."""

from collections.abc import Mapping
from types import MappingProxyType

from tile2cu.frontend.context import Context
from tile2cu.frontend.values import Builtin, Instance, Opaque


def _parser(cx: Context, *arguments: object, **options: object) -> object:
    """`argparse.ArgumentParser(...)`: an object that collects the defaults of its options."""
    defaults: dict[str, object] = {}
    parser = Instance("argparse.ArgumentParser")

    def add_argument(cx: Context, *names: object, **options: object) -> object:
        name = _destination(names, options.get("dest"))
        if name:
            defaults.setdefault(name, _default(options))
            if cx.here is not None:
                cx.options.setdefault(name, (defaults[name], cx.here))
        return Opaque("add_argument(...)")

    def parse_args(cx: Context, *arguments: object) -> object:
        return Instance("args", dict(defaults))

    def set_defaults(cx: Context, **values: object) -> None:
        defaults.update(values)

    parser.values.update(
        add_argument=Builtin("add_argument", add_argument),
        parse_args=Builtin("parse_args", parse_args),
        parse_known_args=Builtin("parse_known_args", lambda cx, *args: (parse_args(cx), [])),
        set_defaults=Builtin("set_defaults", set_defaults),
        add_argument_group=Builtin("add_argument_group", lambda cx, *args, **named: parser),
        add_mutually_exclusive_group=Builtin("add_mutually_exclusive_group", lambda cx, **named: parser),
    )
    return parser


def _destination(names: tuple[object, ...], dest: object) -> str:
    """The attribute of an option: `dest`, its first long name, or its short one."""
    if isinstance(dest, str):
        return dest
    texts = [name for name in names if isinstance(name, str)]
    long = next((name for name in texts if name.startswith("--")), texts[0] if texts else "")
    return long.lstrip("-").replace("-", "_")


def _default(options: Mapping[str, object]) -> object:
    """The value of an option that is not given."""
    if "default" not in options:
        return {"store_true": False, "store_false": True}.get(str(options.get("action")))
    value, kind = options["default"], options.get("type")
    if isinstance(value, str) and isinstance(kind, Builtin) and kind.name in ("int", "float"):
        try:
            return int(value[:100]) if kind.name == "int" else float(value[:100])
        except ValueError:
            return Opaque(value)
    return value


ARGPARSE: Mapping[str, object] = MappingProxyType({"ArgumentParser": Builtin("argparse.ArgumentParser", _parser)})
