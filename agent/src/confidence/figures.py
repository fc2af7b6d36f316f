#!/usr/bin/env python3
"""Prints the tables of the guide's section on confidence and draws its picture, from data.csv.

    figures.py            print the tables, and write docs/src/pictures/confidence.svg
    figures.py --check    fail if the guide has other tables, or the stored picture is another one

The confidence in each test is its column `held_out`: that of a model fitted without the test's repository.
"""

import csv
import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE / "data.csv"
GUIDE = HERE.parents[2] / "docs/src"
PICTURE = GUIDE / "pictures/confidence.svg"
PAGE = GUIDE / "checking.md"

FORGED = "forged"
EDGES = [0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.01]
MINIMUMS = [0, 0.2, 0.4, 0.6, 0.8, 0.9]

# Width of a plot, and of the room for the labels of an axis, in SVG units.
SIZE, AXIS = 300, 65


def is_forged(row):
    return row["prediction"].startswith(FORGED)


def read():
    """Return the confidence in each published test, and whether it is right."""
    with DATA.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if not is_forged(row)]
    return [(float(row["held_out"]), int(row["right"])) for row in rows]


def mean(values):
    return sum(values) / len(values)


def bins(tests):
    """Return the range, the number of tests, the mean confidence and the share of right tests of each bin."""
    for low, high in zip(EDGES, EDGES[1:]):
        inside = [test for test in tests if low <= test[0] < high]
        if inside:
            chances, right = zip(*inside)
            yield f"{low:.1f} to {min(high, 1):.1f}", len(inside), mean(chances), mean(right)


def kept(tests, minimum):
    """Return the share of tests kept, the share of right ones among them, and the share of right tests kept."""
    right = [right for chance, right in tests if chance >= minimum]
    all_right = sum(right for _, right in tests)
    return len(right) / len(tests), mean(right), sum(right) / all_right


def tables(tests):
    rows = "".join(f"| {label} | {n} | {chance:.2f} | {share:.2f} |\n" for label, n, chance, share in bins(tests))
    yield "| confidence | tests | mean confidence | right |\n|---|---|---|---|\n" + rows
    rows = [(minimum, *kept(tests, minimum)) for minimum in MINIMUMS if minimum <= max(tests)[0]]
    rows = "".join(f"| {minimum} | {all_:.0%} | {share:.0%} | {found:.0%} |\n" for minimum, all_, share, found in rows)
    yield "| `--min-confidence` | tests kept | right among them | right tests kept |\n|---|---|---|---|\n" + rows


def wilson(share, n):
    """Return the 95 % interval of a share (E. B. Wilson, 1927)."""
    z = 1.96
    middle, width = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return [(middle + sign * width) / (1 + z * z / n) for sign in (-1, 1)]


class Plot:
    """A square plot of shares, whose left edge is at `left`."""

    def __init__(self, left, title, x_label, y_label):
        self.left, self.pieces = left, []
        for tick in (0, 0.2, 0.4, 0.6, 0.8, 1):
            self.line("grid", [(tick, 0), (tick, 1)])
            self.line("grid", [(0, tick), (1, tick)])
            self.text("middle", (tick, 0), (0, 18), f"{tick:.1f}")
            self.text("end", (0, tick), (-6, 4), f"{tick:.1f}")
        self.text("start", (0, 1), (0, -14), title, "title")
        self.text("middle", (0.5, 0), (0, 40), x_label)
        x, y = self.at((0, 0.5))
        turned = f'transform="rotate(-90 {x - 40:.1f} {y:.1f})"'
        self.pieces.append(f'<text text-anchor="middle" x="{x - 40:.1f}" y="{y:.1f}" {turned}>{y_label}</text>')

    def at(self, point):
        return self.left + SIZE * point[0], 45 + SIZE * (1 - point[1])

    def line(self, name, points):
        points = " ".join("{:.1f},{:.1f}".format(*self.at(point)) for point in points)
        self.pieces.append(f'<polyline class="{name}" points="{points}"/>')

    def dot(self, point, about):
        x, y = self.at(point)
        self.pieces.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{about}</title></circle>')

    def text(self, anchor, point, offset, text, name="label"):
        (x, y), (dx, dy) = self.at(point), offset
        self.pieces.append(f'<text class="{name}" text-anchor="{anchor}" x="{x + dx:.1f}" y="{y + dy:.1f}">{text}</text>')


def picture(tests):
    reliability = Plot(AXIS, "Reliability", "mean confidence", "share of right tests")
    reliability.line("ideal", [(0, 0), (1, 1)])
    dots = list(bins(tests))
    reliability.line("curve", [(chance, share) for _, _, chance, share in dots])
    for label, n, chance, share in dots:
        low, high = wilson(share, n)
        reliability.line("interval", [(chance, max(low, 0)), (chance, min(high, 1))])
        reliability.dot((chance, share), f"confidence {label}: {n} tests, {share:.0%} right")
        reliability.text("start", (chance, share), (7, 14), f"{n}")

    precision = Plot(SIZE + 2 * AXIS, "Precision and coverage", "share of tests kept", "share of right tests among them")
    steps = sorted({chance for chance, _ in tests}, reverse=True)
    precision.line("curve", [kept(tests, minimum)[:2] for minimum in steps])
    for minimum in MINIMUMS:
        if minimum <= steps[0]:
            all_, share, _ = kept(tests, minimum)
            precision.dot((all_, share), f"minimum {minimum}: {all_:.0%} kept, {share:.0%} of them right")
            # The first points of the curve are close to each other.
            precision.text("start", (all_, share), (7, 16 if all_ < 0.05 else -8), f"{minimum}")

    width, height = 2 * (SIZE + AXIS) + 30, SIZE + 100
    pieces = "\n".join(reliability.pieces + precision.pieces)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">
<title>Reliability, and precision and coverage, of the confidence</title>
<style>
text {{ font: 12px sans-serif; fill: #24292f }}
.title {{ font-weight: bold }}
polyline {{ fill: none }}
.grid {{ stroke: #d8dee4 }}
.ideal {{ stroke: #8c959f; stroke-dasharray: 4 }}
.curve, .interval {{ stroke: #0969da }}
.interval {{ stroke-opacity: 0.4; stroke-width: 3 }}
circle {{ fill: #0969da }}
</style>
<rect width="100%" height="100%" rx="8" fill="#ffffff"/>
{pieces}
</svg>
"""


def check(tests):
    """Return what the guide has otherwise."""
    page = PAGE.read_text(encoding="utf-8")
    for table in tables(tests):
        if table not in page:
            yield f"{PAGE} lacks this table:\n\n{table}"
    if PICTURE.read_text(encoding="utf-8") != picture(tests):
        yield f"{PICTURE} is out of date: run {Path(__file__).resolve()}"


def write(tests):
    print(*tables(tests), sep="\n", end="")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(tests), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        problems = list(check(read()))
        sys.exit("\n".join(problems) or None)
    write(read())
