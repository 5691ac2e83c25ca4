"""The page's charts, each with a table of its numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from pipeline_lib.report.svg import WIDTH, Axis, Plot, colour, image, line, mark, tag, text

SMALL = (256, 205)
ROW, NAMES = 30, 150
"""Height of a row in a chart of intervals, and width of the names."""
BOX, GAP = (154, 46), (26, 14)
"""Size of a stage's box in the flow, and the space between boxes."""


@dataclass(frozen=True)
class Figure:
    """A chart, and its numbers as a table.

    :ivar legend: swatch and name of each series, if the chart itself does not name them.
    """

    title: str
    svg: Markup
    head: list[str]
    rows: list[list[str]]
    note: str = ""
    legend: list[tuple[Markup, str]] = field(default_factory=list)


def _legend(systems: Sequence[Mapping[str, Any]]) -> list[tuple[Markup, str]]:
    return [(_swatch(system["series"]), system["system"]) for system in systems]


def _swatch(series: int) -> Markup:
    drawn = line(1, 27, 8, 8, f"line {colour(series)}"), mark(14.0, 8.0, series)
    return tag("svg", *drawn, width=28, height=16, aria_hidden="true", viewBox="0 0 28 16")


def intervals(name: str, title: str, unit: str, gains: list[dict[str, Any]], scale: float) -> Figure:
    """Draw differences from a baseline with their intervals, one per row, around zero.

    :param gains: method, baseline, difference, low and high (or None), p_holm (or None), and
        optionally ``changed``, what differs in the method.
    """
    ends = [gain[end] * scale for gain in gains for end in ("low", "difference", "high") if gain[end] is not None]
    axis = Axis.of(unit, [0.0, *ends], (NAMES, WIDTH - 14))
    bottom = 10 + ROW * len(gains)
    drawn = []
    for value in axis.ticks:
        x = axis(value)
        drawn.append(line(x, x, 6, bottom, "zero" if value == 0 else "grid"))
        drawn.append(text(axis.text(value), x, bottom + 16, "tick mid"))
    drawn.append(text(unit, (NAMES + WIDTH) / 2, bottom + 34, "label mid"))
    cells, hints = [_gain_cells(gain, scale) for gain in gains], []
    for number, (gain, (difference, between, _)) in enumerate(zip(gains, cells, strict=True)):
        y, changed = 10 + ROW * (number + 0.5), gain.get("changed")
        drawn.append(text(gain["method"], NAMES - 10, y + (0 if changed else 4), "name end"))
        if changed:
            drawn.append(text(changed, NAMES - 10, y + 12, "tick end"))
        if gain["low"] is not None:
            drawn.append(line(axis(gain["low"] * scale), axis(gain["high"] * scale), y, y, _bar(gain["series"])))
        hints.append(f"{gain['method']} over {gain['baseline']}: {difference} ({between})")
        drawn.append(mark(axis(gain["difference"] * scale), y, gain["series"], hints[-1]))
    differs = ["What differs"] if any("changed" in gain for gain in gains) else []
    return Figure(
        title,
        image(name, title, "; ".join(hints), WIDTH, bottom + 44, *drawn),
        ["Method", *differs, "Over", "Difference", "Interval", "p (Holm)"],
        [
            [gain["method"], *([gain["changed"]] if differs else []), gain["baseline"], *numbers]
            for gain, numbers in zip(gains, cells, strict=True)
        ],
    )


def _bar(series: int) -> str:
    return f"bar {colour(series)}"


def _gain_cells(gain: Mapping[str, Any], scale: float) -> list[str]:
    low, high, p = gain["low"], gain["high"], gain["p_holm"]
    between = "–" if low is None else f"{low * scale:+.3g} to {high * scale:+.3g}"
    return [f"{gain['difference'] * scale:+.3g}", between, "–" if p is None else f"{p:.3f}"]


def scatter(name: str, title: str, x: str, metric: str, points: list[dict[str, Any]]) -> Figure:
    """Draw scores, in percent, against their cost, on a logarithmic scale.

    :param points: system, series, x, score, and std or None.
    """
    spread = [p["score"] + sign * (p["std"] or 0.0) for p in points for sign in (-1, 1)]
    plot = Plot.of((x, [p["x"] for p in points]), (f"{metric} (%)", spread), log_x=True, percent="y")
    for p in points:
        if p["std"]:
            low, high = plot.y(p["score"] - p["std"]), plot.y(p["score"] + p["std"])
            plot.drawings.append(line(plot.x(p["x"]), plot.x(p["x"]), low, high, _bar(p["series"])))
        plot.mark(p["x"], p["score"], p["series"], f"{p['system']}: {_percent(p['score'])}")
    rows = [[p["system"], f"{p['x']:,.0f}", _percent(p["score"]), _percent(p["std"])] for p in points]
    described = "; ".join(f"{row[0]}: {row[1]}, {row[2]} %" for row in rows)
    head = ["System", x, f"{metric} (%)", "± (%)"]
    return Figure(title, plot.drawn(name, title, described), head, rows, legend=_legend(points))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def reliability_chart(name: str, system: str, series: int, bins: Mapping[str, list[float]], regression: bool) -> Figure:
    """Draw what a system predicts against what is observed, with the diagonal."""
    predicted, observed = bins["predicted"], bins["observed"]
    labels = ("answer", "label") if regression else ("confidence (%)", "accuracy (%)")
    span = [*predicted, *observed] if regression else [*predicted, *observed, 1.0]
    plot = Plot.of((labels[0], span), (labels[1], span), SMALL, percent="" if regression else "xy")
    ends = min(span), max(span)
    plot.drawings.append(line(*map(plot.x, ends), *map(plot.y, ends), "even"))
    pairs = list(zip(predicted, observed, strict=True))
    plot.line(pairs, series)
    show: Callable[[float], str] = "{:.3f}".format if regression else _percent
    for a, b in pairs:
        plot.mark(a, b, series, f"{labels[0]} {show(a)}, {labels[1]} {show(b)}")
    kind = "Mean label" if regression else "Accuracy"
    listed = ", ".join(f"{show(a)}: {show(b)}" for a, b in pairs)
    described = f"{kind} in {len(pairs)} bins of equal mass: {listed}"
    rows = [[str(n), show(a), show(b), show(b - a)] for n, (a, b) in enumerate(pairs, 1)]
    head = ["Bin", labels[0].capitalize(), labels[1].capitalize(), "Difference"]
    return Figure(system, plot.drawn(name, system, described), head, rows)


def routing_chart(name: str, routes: list[dict[str, Any]], split: str, cost: str) -> Figure:
    """Draw accuracy against cost as more and more rows are routed to the teacher.

    :param routes: system, series, teacher_accuracy, curve and best (cost, routed, accuracy).
    """
    title = f"Accuracy on {split} against cost"
    points = [point for route in routes for point in [*route["curve"], route["best"]]]
    levels = sorted({route["teacher_accuracy"] for route in routes})
    costs, scores = [0.0, *(p["cost"] for p in points)], [*(p["accuracy"] for p in points), *levels]
    plot = Plot.of((f"cost ({cost}, teacher alone = 1)", costs), ("accuracy (%)", scores), percent="y")
    plot.drawings += [line(*plot.x.span, plot.y(level), plot.y(level), "even") for level in levels]
    rows, described = [], []
    for route in routes:
        system, best = route["system"], route["best"]
        plot.line([(p["cost"], p["accuracy"]) for p in route["curve"]], route["series"])
        hint = f"{system}: {_percent(best['accuracy'])} at cost {best['cost']:.2f}"
        plot.mark(best["cost"], best["accuracy"], route["series"], hint)
        names = [f"{system} (as promised)", *[system] * len(route["curve"])]
        for label, p in zip(names, [best, *route["curve"]], strict=True):
            rows.append([label, _percent(p["routed"]), f"{p['cost']:.2f}", _percent(p["accuracy"])])
        described.append(f"{names[0]} {_percent(best['accuracy'])} % at {best['cost']:.2f}")
    return Figure(
        title,
        plot.drawn(name, title, "; ".join(described)),
        ["Method", "Routed (%)", f"Cost ({cost})", "Accuracy (%)"],
        rows,
        "Mark: what the student may answer alone. Dashed: the teacher.",
        _legend(routes),
    )


def learning_chart(name: str, system: str, series: int, curves: list[dict[str, Any]], key: str) -> Figure:
    """Draw the curves of one system's seeds, each with a mark at the evaluation that was kept.

    :param key: ``dev`` or ``loss``.
    """
    percent = key == "dev" and curves[0]["measure"] != "loss"
    measure = "training loss" if key == "loss" else f"{curves[0]['measure']} on dev"
    label = f"{measure} (%)" if percent else measure
    show: Callable[[float | None], str] = _percent if percent else _decimals
    # A score is None where it is undefined, such as a correlation of constants.
    histories = [[(e["step"], e[key]) for e in curve["history"] if e[key] is not None] for curve in curves]
    steps, values = zip((0.0, 0.0), *(point for points in histories for point in points), strict=True)
    plot = Plot.of(("step", steps), (label, values[1:] or [0.0]), SMALL, percent="y" if percent else "")
    rows, described = [], []
    for curve, points in zip(curves, histories, strict=True):
        seed = curve["seed"]
        plot.line(points, series, "thin")
        if points:
            described.append(f"seed {seed}: {show(points[0][1])} to {show(points[-1][1])}")
        for evaluation in curve["history"]:
            step, value = evaluation["step"], evaluation[key]
            weights = _kept(evaluation) if step == curve["best_step"] else ""
            rows.append([str(seed), f"{step:,}", f"{evaluation['epoch']:.2f}", show(value), weights])
            if weights and value is not None:
                plot.mark(step, value, series, f"seed {seed}, step {step}: {show(value)}, {weights}")
    head = ["Seed", "Step", "Epoch", label.capitalize(), "Weights"]
    return Figure(system, plot.drawn(name, f"{system}: {measure}", "; ".join(described)), head, rows)


def _kept(evaluation: Mapping[str, Any]) -> str:
    """Say that an evaluation's weights were kept, and the loss that chose it, if one did."""
    loss = evaluation.get("dev_loss")
    return "kept" if loss is None else f"kept: lowest loss on dev, {loss:.4f}"


def _decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def flow_chart(name: str, stages: list[dict[str, Any]]) -> Markup:
    """Draw the stages in columns, each after those it depends on, with time and work reused.

    :param stages: see :func:`pipeline_lib.base.flow.read_flow`; each with a ``line`` of text.
    """
    rows: dict[int, int] = {}
    corners = {}
    for stage, column in _columns({stage["name"]: stage["after"] for stage in stages}).items():
        row = rows.setdefault(column, 0)
        rows[column] += 1
        corners[stage] = 1 + column * (BOX[0] + GAP[0]), 1 + row * (BOX[1] + GAP[1])
    edges, boxes, described = [], [], []
    for stage in stages:
        x, y = corners[stage["name"]]
        for other in stage["after"]:
            x1, y1, y2 = corners[other][0] + BOX[0], corners[other][1] + BOX[1] / 2, y + BOX[1] / 2
            bend = max(18.0, (x - x1) / 2)
            path = f"M{x1} {y1} C{x1 + bend} {y1} {x - bend} {y2} {x} {y2}"
            edges.append(tag("path", d=path, class_="edge"))
        kind = "box" if stage["runs"] else "box idle"
        boxes.append(tag("rect", x=x, y=y, width=BOX[0], height=BOX[1], rx=6, class_=kind))
        boxes += [text(stage["name"], x + 9, y + 20, "name"), text(stage["line"], x + 9, y + 38, "tick")]
        after = f" after {', '.join(stage['after'])}" if stage["after"] else ""
        described.append(f"{stage['name']} ({stage['line']}){after}")
    width = 2 + len(rows) * (BOX[0] + GAP[0]) - GAP[0]
    height = 2 + max(rows.values(), default=1) * (BOX[1] + GAP[1]) - GAP[1]
    return image(name, "The stages", "; ".join(described), width, height, *edges, *boxes)


def _columns(after: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return each stage's column: after its dependencies, and close to its dependents."""
    columns: dict[str, int] = {}
    for name, others in after.items():
        columns[name] = 1 + max((columns[other] for other in others), default=-1)
    for name in reversed(after):
        waiting = [columns[other] for other, dependencies in after.items() if name in dependencies]
        if not after[name] and waiting:
            columns[name] = min(waiting) - 1
    return columns
