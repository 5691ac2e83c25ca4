"""What `init` says of students before anything is trained."""

import pytest

from pipeline_lib.onboarding.expectations import expectation


@pytest.mark.parametrize(
    ("rows", "texts", "line"),
    [
        (900, 0, "900 rows: students some 5 to 9 points below the teacher; with 2,000 texts"),
        (500, 999, "500 rows: students some 5 to 11 points below the teacher"),
        (1200, 2500, "1,200 rows and 2,500 texts without labels: students some 2 to 7 points"),
    ],
)
def test_the_nearest_figures_are_told(rows: int, texts: int, line: str) -> None:
    assert expectation("classification", rows, texts).startswith(line)


@pytest.mark.parametrize(("kind", "rows"), [("regression", 300), ("classification", 120)])
def test_nothing_is_told_that_was_not_measured(kind: str, rows: int) -> None:
    assert expectation(kind, rows, 5000) is None
    assert expectation("classification", 60_000, 0) is None
