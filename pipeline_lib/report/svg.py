"""SVG drawing: tags, axes and scales.  Colours are CSS classes that the page's style defines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

WIDTH, HEIGHT = 428, 285
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 44


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element; children and attributes are escaped unless they are markup.

    In attribute names, a trailing underscore is dropped and others become hyphens; numbers are
    rounded to a tenth of a pixel.
    """
    rendered = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(escape(child) for child in children)
    return Markup(f"<{name}{rendered}>{inner}</{name}>")


def _number(value: Any) -> Any:
    return f"{round(value, 1):g}" if isinstance(value, float) else value


def image(name: str, title: str, description: str, width: float, height: float, *parts: Any) -> Markup:
    """Return an image with a title and a description for those who cannot see it.

    :param name: a name unique in the page.
    """
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-desc"),
        *parts,
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
        low, high, value = (
            (math.log(self.low), math.log(self.high), math.log(value)) if self.log else (self.low, self.high, value)
        )
        return self.span[0] + (value - low) / (high - low) * (self.span[1] - self.span[0])

    @property
    def ticks(self) -> list[float]:
        """Round values within the axis: 1, 2 or 5 times a power of ten apart."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            several = [m * 10.0**power for power in powers for m in (1, 2, 5)]
            ticks = [tick for tick in several if self.low <= tick <= self.high]
            return ticks if len(ticks) <= 6 else [t for t in ticks if _is_power_of_ten(t)]
        rough = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def text(self, value: float) -> str:
        """Return a tick's value as text."""
        if self.percent:
            return f"{100 * value:.3g}"
        if abs(value) >= 1e6:
            return f"{value / 1e6:g}M"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{round(value, 6) + 0.0:g}"


def _is_power_of_ten(value: float) -> bool:
    return math.isclose(math.log10(value) % 1, 0, abs_tol=1e-9)


@dataclass
class Plot:
    """Two axes, and what is drawn between them."""

    size: tuple[int, int]
    x: Axis
    y: Axis
    parts: list[Markup] = field(default_factory=list)

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
        x0, x1 = self.x.span
        y0, y1 = self.y.span
        parts = []
        for value in self.y.ticks:
            y = self.y(value)
            parts.append(tag("line", x1=x0, x2=x1, y1=y, y2=y, class_="grid"))
            parts.append(tag("text", self.y.text(value), x=x0 - 6, y=y + 4, class_="tick end"))
        for value in self.x.ticks:
            x = self.x(value)
            parts.append(tag("line", x1=x, x2=x, y1=y0, y2=y1, class_="grid"))
            parts.append(tag("text", self.x.text(value), x=x, y=y0 + 16, class_="tick mid"))
        middle = (y0 + y1) / 2
        parts.append(tag("text", self.x.label, x=(x0 + x1) / 2, y=y0 + 35, class_="label mid"))
        turned = f"translate(13 {middle:.1f}) rotate(-90)"
        return [*parts, tag("text", self.y.label, transform=turned, class_="label mid")]

    def line(self, points: Sequence[tuple[float, float]], series: int, extra: str = "") -> None:
        """Draw a line in a series' colour and dash."""
        places = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        self.parts.append(tag("polyline", points=places, class_=f"line {_series(series)} {extra}"))

    def mark(self, a: float, b: float, series: int, text: str) -> None:
        """Draw a series' mark, with a text shown on hover."""
        self.parts.append(mark(self.x(a), self.y(b), series, text))

    def bar(self, a: float, low: float, high: float, series: int) -> None:
        """Draw an error bar."""
        x = self.x(a)
        line = {"x1": x, "x2": x, "y1": self.y(low), "y2": self.y(high)}
        self.parts.append(tag("line", **line, class_=f"bar {_series(series)}"))

    def drawn(self, name: str, title: str, description: str) -> Markup:
        """Return the finished image."""
        return image(name, title, description, *self.size, *self.frame(), *self.parts)


def _series(number: int) -> str:
    return f"s{number % 8}"


def mark(x: float, y: float, series: int, text: str | None = None) -> Markup:
    """Return a series' mark: the shape distinguishes it if the colour does not."""
    r, kind = 5.0, _series(series)
    inner = [] if text is None else [tag("title", text)]
    shape = series % 4
    if shape == 0:
        return tag("circle", *inner, cx=x, cy=y, r=r, class_=f"mark {kind}")
    corners = {
        1: [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        2: [(0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
        3: [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    }[shape]
    points = " ".join(f"{x + r * a:.1f},{y + r * b:.1f}" for a, b in corners)
    return tag("polygon", *inner, points=points, class_=f"mark {kind}")
