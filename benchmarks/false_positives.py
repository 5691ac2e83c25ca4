"""How often the significance test of the tables calls two equal systems different.

    python benchmarks/false_positives.py

It simulates training runs: two systems of equal expected accuracy (80 % of 1,000 examples), with random variation
between seeds.  For comparison, it runs the bootstrap over examples alone on the same answers, which ignores that
other seeds would have given other results.  Writes benchmarks/results/false_positives.{json,md}.
"""

import numpy as np
import typer
from harness import RESULTS, facts, table, write_results

from pipeline_lib.base.processor import usable_cores
from pipeline_lib.results.significance import compare

ROWS, ACCURACY_SLOPE = 1000, 0.198
"""By how much accuracy changes per unit of latent ability, at 80 %."""


def main(trials: int = 2000, resamples: int = 200) -> None:
    """Simulate every combination of seeds and spread."""
    error_rates = []
    for seeds in (2, 3, 5):
        for spread in (0.0, 0.005, 0.010, 0.018):
            ours, examples = rates(seeds, spread, trials, resamples)
            error_rates.append({"seeds": seeds, "spread": spread, "ours": ours, "examples_only": examples})
            print(error_rates[-1], flush=True)
    write(error_rates, trials, resamples)


def rates(seeds: int, spread: float, trials: int, resamples: int) -> tuple[float, float]:
    """Return how often p < .05 comes out, of our test and of the bootstrap over examples."""
    rng = np.random.default_rng([seeds, round(1000 * spread)])
    labels = np.zeros(ROWS, np.int64)
    ours = examples = 0
    for trial in range(trials):
        hardness = rng.normal(size=ROWS)
        a, b = (trainings(rng, hardness, seeds, spread) for _ in range(2))
        settings = {"resamples": resamples, "confidence": 0.95, "seed": trial}
        ours += compare(labels, a, b, "accuracy", 2, **settings).p < 0.05
        examples += examples_only(a, b, rng, resamples) < 0.05
    return ours / trials, examples / trials


def trainings(rng: np.random.Generator, hardness: np.ndarray, seeds: int, spread: float) -> np.ndarray:
    """Return answers, 0 where right, shape (seeds, rows)."""
    ability = 1.19 + rng.normal(scale=spread / ACCURACY_SLOPE, size=(seeds, 1))
    noise = rng.normal(size=(seeds, ROWS))
    return (ability + hardness + noise < 0).astype(np.int64)


def examples_only(a: np.ndarray, b: np.ndarray, rng: np.random.Generator, resamples: int) -> float:
    """Return the two-sided p of the paired bootstrap that resamples examples alone."""
    gain = b.mean(0) - a.mean(0)
    weights = rng.multinomial(ROWS, np.full(ROWS, 1 / ROWS), resamples)
    means = weights @ gain / ROWS
    tail = min((means <= 0).sum(), (means >= 0).sum())
    return min(1.0, 2 * (tail + 1) / (resamples + 1))


def write(error_rates: list[dict[str, float]], trials: int, resamples: int) -> None:
    """Write the results."""
    results = {
        "facts": facts(("numpy", "scipy"), usable_cores(), 1),
        "trials": trials,
        "resamples": resamples,
        "rates": error_rates,
    }
    rows = [
        [
            f"{row['seeds']}",
            f"{100 * row['spread']:.1f}",
            f"{100 * row['ours']:.1f}",
            f"{100 * row['examples_only']:.1f}",
        ]
        for row in error_rates
    ]
    lines = [
        f"Two systems of equal expected accuracy (80 % of {ROWS:,} examples) are called different at p < .05 in so "
        f"many percent of {trials:,} simulations; `spread` is the standard deviation of a seed's accuracy in points.",
        "",
        *table(["seeds", "spread", "seeds and examples", "examples only"], rows),
    ]
    write_results("false_positives", results, lines, RESULTS)


if __name__ == "__main__":
    typer.run(main)
