"""Formulas for the site, as MathML, which browsers draw without a script: $...$, and fences called math."""

import re
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert, convert_to_element
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor

INLINE = r"\$(?=\S)([^$]+?)(?<=\S)\$(?!\d)"
TAG = re.compile(r"\\tag\{(\d+)\}")
# what comes before it has been taken out already: code (190); what comes after it would read \top as an escape (180)
PRIORITY = 185


class Inline(InlineProcessor):
    """A formula in a line of text."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # noqa: N802 (Markdown's name)
        """Draw the formula, wherever it stands."""
        return convert_to_element(m.group(1)), m.start(0), m.end(0)


class Formulas(Extension):
    """Formulas in lines of text."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's name)
        """Look for formulas before Markdown looks for emphasis in them."""
        md.inlinePatterns.register(Inline(INLINE, md), "formula", PRIORITY)


def makeExtension(**settings: Any) -> Formulas:  # noqa: N802 (Markdown's name)
    """Make the extension, as Markdown asks for it by the name of this module."""
    return Formulas(**settings)


def displayed(source: str, _language: str, css_class: str, _options: dict[str, Any], _md: Markdown, **_: Any) -> str:
    """Draw a formula on a line of its own, with its number at the end of the line."""
    number = "".join(f"({number})" for number in TAG.findall(source))
    formula = convert(TAG.sub("", source), display="block")
    style = "display: flex; align-items: center; justify-content: space-between; overflow-x: auto"
    return f'<div class="{css_class}" style="{style}">{formula}<span>{number}</span></div>'
