"""Functors whose bodies are compiled for the device alone: the host's constants that nothing else names."""

import re
from collections import Counter
from dataclasses import replace

from tile2cu.emitter.view import KernelView, LaunchView, words
from tile2cu.styles.base.view import NO_SECTION, Declaration, Section

_STRING = re.compile(r'"[^"]*"')


def for_device_alone(view: KernelView) -> KernelView:
    """Marks constants that only bodies name [[maybe_unused]]: in the compilation for the host nothing does."""
    sections = (view.sizes, *(each.sizes for each in view.launches))
    texts = (_STRING.sub("", each.text) for section in sections for each in section.declarations)
    in_sizes = Counter(word for text in texts for word in re.findall(r"\w+", text))
    others = words(replace(view, sizes=NO_SECTION, launches=tuple(map(_for_host, view.launches))))
    unused = {word for word, count in in_sizes.items() if count == 1} - others
    return replace(
        view,
        sizes=_marked(view.sizes, unused),
        launches=tuple(replace(each, sizes=_marked(each.sizes, unused)) for each in view.launches),
    )


def _for_host(launch: LaunchView) -> LaunchView:
    """A kernel without its constants and its body."""
    parts = replace(launch.parts, setup=(), fragments=(), start=(), body=(), own_layouts={})
    return replace(launch, sizes=NO_SECTION, parts=parts)


def _marked(section: Section, unused: set[str]) -> Section:
    return replace(section, declarations=tuple(_declaration(each, unused) for each in section.declarations))


def _declaration(one: Declaration, unused: set[str]) -> Declaration:
    names = re.findall(r"(\w+) = ", one.text) if one.text.startswith("constexpr ") else []
    return replace(one, text=f"[[maybe_unused]] {one.text}") if unused.intersection(names) else one
