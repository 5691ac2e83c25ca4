"""SVG drawing: tags, axes and scales.  Colours are CSS classes that the page's style defines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

WIDTH, HEIGHT = 428, 285
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 44
RADIUS = 5.0
CORNERS = (
    [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    [(0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
    [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
)
"""Of a series' mark, in radii; every fourth series has a circle instead."""


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element; children and attributes are escaped unless they are markup.

    In attribute names, a trailing underscore is dropped and others become hyphens; numbers are
    rounded to a tenth of a pixel.
    """
    rounded = {key: f"{round(v, 1):g}" if isinstance(v, float) else v for key, v in attributes.items()}
    rendered = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(v)}"' for key, v in rounded.items())
    return Markup(f"<{name}{rendered}>{Markup('').join(map(escape, children))}</{name}>")


def line(x1: float, x2: float, y1: float, y2: float, kind: str) -> Markup:
    """Return a straight line."""
    return tag("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind)


def text(content: str, x: float, y: float, kind: str) -> Markup:
    """Return a line of text."""
    return tag("text", content, x=x, y=y, class_=kind)


def image(name: str, title: str, description: str, width: float, height: float, *drawn: Any) -> Markup:
    """Return an image with a title and a description for those who cannot see it."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-desc"),
        *drawn,
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


@dataclass(frozen=True)
class Axis:
    """Values along one side of a plot.

    :ivar span: in pixels, from the lowest value to the highest.
    """

    label: str
    low: float
    high: float
    span: tuple[float, float]
    log: bool = False
    percent: bool = False

    @classmethod
    def of(cls, label: str, values: Sequence[float], span: tuple[float, float], **options: bool) -> "Axis":
        """Return an axis with room for all values."""
        low, high = min(values), max(values)
        if options.get("log"):
            return cls(label, low / 1.5, high * 1.5, span, **options)
        margin = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
        return cls(label, low - margin, high + margin, span, **options)

    def __call__(self, value: float) -> float:
        """Return the position of a value, in pixels."""
        scale = math.log if self.log else float
        low, high = scale(self.low), scale(self.high)
        return self.span[0] + (scale(value) - low) / (high - low) * (self.span[1] - self.span[0])

    @property
    def ticks(self) -> list[float]:
        """Round values within the axis: 1, 2 or 5 times a power of ten apart."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            several = [(m, m * 10.0**power) for power in powers for m in (1, 2, 5)]
            ticks = [(m, tick) for m, tick in several if self.low <= tick <= self.high]
            return [tick for m, tick in ticks if m == 1 or len(ticks) <= 6]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def text(self, value: float) -> str:
        """Return a tick's value as text."""
        if self.percent:
            return f"{100 * value:.3g}"
        if abs(value) >= 1e6:
            return f"{value / 1e6:g}M"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{round(value, 6) + 0.0:g}"


@dataclass
class Plot:
    """Two axes, and what is drawn between them."""

    size: tuple[int, int]
    x: Axis
    y: Axis
    drawings: list[Markup] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        x: tuple[str, Sequence[float]],
        y: tuple[str, Sequence[float]],
        size: tuple[int, int] = (WIDTH, HEIGHT),
        log_x: bool = False,
        percent: str = "",
    ) -> "Plot":
        """Return a plot with room for all values; ``percent`` names the axes of shares."""
        width, height = size
        return cls(
            size,
            Axis.of(*x, (LEFT, width - RIGHT), log=log_x, percent="x" in percent),
            Axis.of(*y, (height - BOTTOM, TOP), percent="y" in percent),
        )

    def frame(self) -> list[Markup]:
        """Return grid, ticks and labels of the axes."""
        (x0, x1), (y0, y1) = self.x.span, self.y.span
        drawn = []
        for value in self.y.ticks:
            y = self.y(value)
            drawn += [line(x0, x1, y, y, "grid"), text(self.y.text(value), x0 - 6, y + 4, "tick end")]
        for value in self.x.ticks:
            x = self.x(value)
            drawn += [line(x, x, y0, y1, "grid"), text(self.x.text(value), x, y0 + 16, "tick mid")]
        turned = f"translate(13 {(y0 + y1) / 2:.1f}) rotate(-90)"
        label = tag("text", self.y.label, transform=turned, class_="label mid")
        return [*drawn, text(self.x.label, (x0 + x1) / 2, y0 + 35, "label mid"), label]

    def line(self, points: Sequence[tuple[float, float]], series: int, extra: str = "") -> None:
        """Draw a line in a series' colour and dash."""
        positions = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        self.drawings.append(tag("polyline", points=positions, class_=f"line {colour(series)} {extra}"))

    def mark(self, a: float, b: float, series: int, hint: str) -> None:
        """Draw a series' mark, with a text shown on hover."""
        self.drawings.append(mark(self.x(a), self.y(b), series, hint))

    def drawn(self, name: str, title: str, description: str) -> Markup:
        """Return the finished image."""
        return image(name, title, description, *self.size, *self.frame(), *self.drawings)


def colour(series: int) -> str:
    """Return the class of a series' colour."""
    return f"s{series % 8}"


def mark(x: float, y: float, series: int, hint: str | None = None) -> Markup:
    """Return a series' mark: the shape distinguishes it if the colour does not."""
    inner, kind = [] if hint is None else [tag("title", hint)], f"mark {colour(series)}"
    if series % 4 == 0:
        return tag("circle", *inner, cx=x, cy=y, r=RADIUS, class_=kind)
    points = " ".join(f"{x + RADIUS * a:.1f},{y + RADIUS * b:.1f}" for a, b in CORNERS[series % 4 - 1])
    return tag("polygon", *inner, points=points, class_=kind)
