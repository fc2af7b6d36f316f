#!/usr/bin/env python3
"""Fits the coefficients of the probability in `testwright check`, and measures it.

    uv run --with scikit-learn==1.7.2 fit.py [--collect CHECKS RESULTS DATASET]…

With --collect, data.csv is written first, from the checks.jsonl of `testwright check`, the results.jsonl of `testwright
eval` for the same predictions, and the dataset. Then coefficients.json is written, and the figures of the guide are
printed. They come from cross-validation: each repository is predicted by a model that was fitted without it.
"""

import argparse
import csv
import json
import math
from collections import defaultdict
from pathlib import Path

import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

HERE = Path(__file__).resolve().parent
DATA = HERE / "data.csv"
# Inverse strength of the L2 penalty.
C = 0.3
# Changes of the log odds by the checks of a model: they are too few to be fitted with the rest.
MODEL_CHECKS = json.loads((HERE / "model_checks.json").read_text())


def collect(sources):
    """Write the signals and the verdict of each prediction to data.csv."""
    rows, names = [], set()
    for checks, results, dataset in sources:
        with open(dataset) as file:
            repositories = {row["instance_id"]: row["repo"] for row in map(json.loads, file)}
        verdicts = {}
        with open(results) as file:
            for result in map(json.loads, file):
                if not result.get("infrastructure"):
                    key = result["instance_id"], result["prediction"]
                    verdicts[key] = result["strict"]["fail_to_pass"]
        with open(checks) as file:
            for check in map(json.loads, file):
                key = check["instance_id"], check["prediction"]
                if key in verdicts and check.get("evidence"):
                    signals = check["evidence"]["signals"]
                    names |= signals.keys() - {"gate"}
                    rows.append((repositories[key[0]], *key, int(verdicts[key]), signals))
    names = sorted(names)
    with DATA.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["repository", "instance", "prediction", "right", "gate", *names])
        for *key, signals in sorted(rows, key=lambda row: row[:3]):
            values = [f"{signals[name]:.4g}" if name in signals else "" for name in names]
            writer.writerow([*key, signals["gate"], *values])


def read():
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("repository", "instance", "prediction", "right", "gate")]
    values = numpy.array([[float(row[name] or 0) for name in names] for row in rows])
    right = numpy.array([int(row["right"]) for row in rows])
    return rows, names, values, right


def fit(rows, values, right):
    """Return a function from rows and values to probabilities, and the model."""
    fails = numpy.array([row["gate"] != "not_failing" for row in rows])
    # Laplace's rule of succession.
    not_failing = (right[~fails].sum() + 1) / ((~fails).sum() + 2)
    scale = values[fails].std(axis=0)
    scale[scale == 0] = 1
    model = LogisticRegression(C=C, max_iter=10_000).fit(values[fails] / scale, right[fails])
    weights, intercept = model.coef_[0] / scale, model.intercept_[0]

    def predict(rows, values):
        chances = 1 / (1 + numpy.exp(-(values @ weights + intercept)))
        fails = numpy.array([row["gate"] != "not_failing" for row in rows])
        return numpy.where(fails, chances, not_failing)

    return predict, (not_failing, intercept, weights)


def cross_validated(rows, values, right):
    repositories = numpy.array([row["repository"] for row in rows])
    chances = numpy.zeros(len(rows))
    for repository in set(repositories):
        held_out = repositories == repository
        rest = [row for row, out in zip(rows, held_out) if not out]
        predict, _ = fit(rest, values[~held_out], right[~held_out])
        chances[held_out] = predict([row for row, out in zip(rows, held_out) if out], values[held_out])
    return chances


def interval(rows, figure, *columns, draws=2_000):
    """Return a figure with its 95 % interval, by a bootstrap of instances."""
    by_instance = defaultdict(list)
    for at, row in enumerate(rows):
        by_instance[row["instance"]].append(at)
    groups = list(by_instance.values())
    random = numpy.random.default_rng(0)
    figures = []
    for _ in range(draws):
        at = numpy.concatenate([groups[i] for i in random.integers(len(groups), size=len(groups))])
        sample = [column[at] for column in columns]
        if 0 < sample[0].sum() < len(at):
            figures.append(figure(*sample))
    low, high = numpy.percentile(figures, [2.5, 97.5])
    return f"{figure(*columns):.3f} ({low:.3f} to {high:.3f})"


def report(rows, right, chances):
    constant = numpy.full(len(right), right.mean())
    print(f"{len(rows)} tests, {right.sum()} right")
    print("AUC", interval(rows, roc_auc_score, right, chances))
    print("Brier", interval(rows, brier_score_loss, right, chances), end="; ")
    print(f"of a constant {brier_score_loss(right, constant):.3f}")
    print("\n| probability | tests | mean probability | right |\n|---|---|---|---|")
    edges = [0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.01]
    for low, high in zip(edges, edges[1:]):
        inside = (low <= chances) & (chances < high)
        if inside.any():
            shown = f"{low:.1f} to {min(high, 1):.1f}"
            print(f"| {shown} | {inside.sum()} | {chances[inside].mean():.2f} | {right[inside].mean():.2f} |")
    print("\n| minimum | tests kept | right among them | right tests kept |\n|---|---|---|---|")
    for minimum in (0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
        kept = chances >= minimum
        if kept.any():
            share, found = right[kept].mean(), right[kept].sum() / right.sum()
            print(f"| {minimum} | {kept.mean():.0%} | {share:.0%} | {found:.0%} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collect", nargs=3, action="append", default=[], metavar=("CHECKS", "RESULTS", "DATASET"))
    args = parser.parse_args()
    if args.collect:
        collect(args.collect)
    rows, names, values, right = read()
    _, (not_failing, intercept, weights) = fit(rows, values, right)
    rounded = {name: round(float(weight), 3) for name, weight in zip(names, weights)}
    coefficients = {
        "not_failing": round(float(not_failing), 3),
        "intercept": round(float(intercept), 3),
        "weights": rounded,
        **MODEL_CHECKS,
    }
    (HERE / "coefficients.json").write_text(json.dumps(coefficients, indent=2) + "\n")
    chances = cross_validated(rows, values, right)
    print("## All")
    report(rows, right, chances)
    generated = numpy.array([row["prediction"] != "golden" for row in rows])
    print("\n## Without golden tests")
    report([row for row, is_one in zip(rows, generated) if is_one], right[generated], chances[generated])


if __name__ == "__main__":
    main()
