"""A page of `tile2cu review` as tests read it: its elements, in order, with their text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}
SVG_CLOSED = {"rect", "path"}  # written as <rect .../> where they have no title


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.own)

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """The elements below, in order; `attributes` with class_ for class and data_py for data-py."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        found = []
        for child in self.children:
            fits = all(value in child.attributes.get(name, "").split(" ") for name, value in wanted.items())
            if fits and tag in ("", child.tag):
                found.append(child)
            found += child.all(tag, **attributes)
        return found

    def by_id(self, id: str) -> Element:
        (found,) = self.all(id=id)
        return found


class Parser(HTMLParser):
    """Builds the tree; every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = self.at = Element("", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.children.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.children.append(Element(tag, {name: value or "" for name, value in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        assert self.at.tag == tag, f"</{tag}> closes <{self.at.tag}> at {self.getpos()}"
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        element: Element | None = self.at
        while element is not None:
            element.own.append(data)
            element = element.parent


def parsed(text: str) -> Element:
    parser = Parser()
    parser.feed(text)
    parser.close()
    assert parser.at is parser.root, f"<{parser.at.tag}> is not closed"
    return parser.root
