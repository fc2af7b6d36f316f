#!/usr/bin/env python3
"""Fits the coefficients of the confidence in a test, and measures it.

    uv run --no-project --with scikit-learn==1.7.2 fit.py [--collect CHECKS VERDICTS DATASET]… [--forged CHECKS DATASET]… [--add]

With --collect, data.csv is written first: from the checks.jsonl of `testwright check`, from the results.jsonl of
`testwright eval` or the selection.json of `testwright select` with the golden patches as candidates, and from the dataset.
--forged adds tests that know nothing of their issues. --add keeps the rows of data.csv for other tests. If the program
computes other signals now, all tests must be collected again, without --add.

Then coefficients.json is written, the column `held_out` of data.csv is updated, and the figures of the guide are printed
and drawn (figures.py). They come from cross-validation: each repository is predicted by a model that was fitted without
it.
"""

import argparse
import csv
import json
import math
from collections import defaultdict
from pathlib import Path

import figures
import numpy
from figures import DATA, FORGED, HERE, is_forged
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

KEYS = ["repository", "instance", "prediction", "right", "gate", "held_out"]
# The same as in mod.rs.
MAX_NOT_ACCEPTED = 0.1
# Signals of forged tests, which are rare in published ones.
FORGED_SIGNALS = ("replaces_code", "unrelated_inputs")


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def verdicts(path):
    """Return whether each prediction is right, by instance and name."""
    if path.endswith(".json"):
        results = json.loads(Path(path).read_text())["results"]
        good = {
            (result["instance_id"], result["tests"]): bool(result["passed"])
            and not (result["failed"] or result["regresses"] or result["forged"])
            for result in results
            if not result.get("infrastructure")
        }
        return good
    return {
        (result["instance_id"], result["prediction"]): result["strict"]["fail_to_pass"]
        for result in lines(path)
        if not result.get("infrastructure")
    }


def collect(sources, forged, kept):
    """Write the signals and the verdict of each prediction to data.csv, beside the `kept` rows of other tests."""
    rows, names = {}, set()
    sources = [(checks, verdicts(results), dataset) for checks, results, dataset in sources]
    for checks, known, dataset in sources + [(checks, None, dataset) for checks, dataset in forged]:
        repositories = {row["instance_id"]: row["repo"] for row in lines(dataset)}
        for check in lines(checks):
            key = check["instance_id"], check["prediction"]
            if not check.get("evidence") or known is not None and key not in known:
                continue
            signals = check["evidence"]["signals"]
            names |= signals["values"].keys()
            right = known is not None and known[key]
            instance, prediction = key
            if known is None:
                prediction = f"{FORGED} {prediction}"
            rows[instance, prediction] = repositories[instance], int(right), signals
    old_names = {name for row in kept for name in row} - set(KEYS)
    if kept and old_names != names:
        raise SystemExit(f"the program computes other signals than data.csv has: {sorted(old_names ^ names)}")
    table = {(row["instance"], row["prediction"]): row for row in kept}
    table |= {
        (instance, prediction): {
            **dict(zip(KEYS, (repository, instance, prediction, right, signals["gate"], ""))),
            **{name: f"{signals['values'].get(name, 0):.4g}" for name in sorted(names)},
        }
        for (instance, prediction), (repository, right, signals) in rows.items()
    }
    write([row for _, row in sorted(table.items())])


def write(rows):
    with DATA.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read():
    with DATA.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in KEYS]
    values = numpy.array([[float(row[name]) for name in names] for row in rows])
    right = numpy.array([int(row["right"]) for row in rows])
    return rows, names, values, right


def fit(rows, names, values, right):
    """Return a function from rows and values to probabilities, and the model."""
    fails = numpy.array([row["gate"] != "not_failing" for row in rows])
    published = numpy.array([not is_forged(row) for row in rows])
    # Laplace's rule of succession.
    calm = published & ~fails
    not_failing = (right[calm].sum() + 1) / (calm.sum() + 2)
    rare = numpy.array([name in FORGED_SIGNALS for name in names])
    used = values[published & fails][:, ~rare]
    scale = used.std(axis=0)
    scale[scale == 0] = 1
    model = LogisticRegression(max_iter=10_000).fit(used / scale, right[published & fails])
    weights, intercept = numpy.zeros(len(names)), model.intercept_[0]
    weights[~rare] = model.coef_[0] / scale
    # All forged tests have one of these signals. Their weight is the share of right tests that have it, smoothed.
    for at in numpy.flatnonzero(rare):
        good = values[(right == 1) & fails][:, at]
        weights[at] = math.log((good.sum() + 1) / (len(good) + 2))

    def predict(rows, values):
        chances = 1 / (1 + numpy.exp(-(values @ weights + intercept)))
        gates = numpy.array([row["gate"] for row in rows])
        chances = numpy.where(gates == "not_failing", not_failing, chances)
        return numpy.where(gates == "accepted", chances, numpy.minimum(chances, MAX_NOT_ACCEPTED))

    return predict, (not_failing, intercept, weights)


def model_checks():
    """Return the changes of the log odds by a model's fixes and by its review.

    They are halves of smoothed likelihood ratios: a fix and a review of one model are not independent.
    """
    changes = {}
    for check, answers in json.loads((HERE / "model_checks.json").read_text()).items():
        right, wrong = (sum(counts[at] for counts in answers.values()) for at in (0, 1))
        for answer, counts in answers.items():
            chances = [(count + 1) / (all_ + len(answers)) for count, all_ in zip(counts, (right, wrong))]
            changes[f"{check}_{answer}"] = round(math.log(chances[0] / chances[1]) / 2, 3)
    del changes["fix_none"]
    return changes


def cross_validate(rows, names, values, right):
    repositories = numpy.array([row["repository"] for row in rows])
    chances = numpy.zeros(len(rows))
    for repository in set(repositories):
        held_out = repositories == repository
        rest = [row for row, out in zip(rows, held_out) if not out]
        predict, _ = fit(rest, names, values[~held_out], right[~held_out])
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
    return f"{figure(*columns):.2f} ({low:.2f} to {high:.2f})"


def brier_ratio(right, chances):
    share = right.mean()
    return brier_score_loss(right, chances) / (share * (1 - share))


def report(rows, right, chances):
    print(f"{len(rows)} tests for {len({row['instance'] for row in rows})} issues, {right.sum()} right")
    print("AUC", interval(rows, roc_auc_score, right, chances))
    print("Brier", interval(rows, brier_score_loss, right, chances))
    print("Brier, divided by that of a constant", interval(rows, brier_ratio, right, chances))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collect", nargs=3, action="append", default=[], metavar=("CHECKS", "VERDICTS", "DATASET"))
    parser.add_argument("--forged", nargs=2, action="append", default=[], metavar=("CHECKS", "DATASET"))
    parser.add_argument("--add", action="store_true", help="keep the rows of data.csv for other tests")
    args = parser.parse_args()
    if args.collect:
        collect(args.collect, args.forged, read()[0] if args.add else [])
    rows, names, values, right = read()
    predict, (not_failing, intercept, weights) = fit(rows, names, values, right)
    coefficients = {
        "not_failing": round(float(not_failing), 3),
        "intercept": round(float(intercept), 3),
        "weights": {name: round(float(weight), 3) for name, weight in zip(names, weights)},
        **model_checks(),
    }
    (HERE / "coefficients.json").write_text(json.dumps(coefficients, indent=2) + "\n")
    chances = cross_validate(rows, names, values, right)
    write([{**row, "held_out": f"{chance:.4f}"} for row, chance in zip(rows, chances)])
    forged = numpy.array([is_forged(row) for row in rows])
    if forged.any():
        for name, some in (("cross-validated", chances[forged]), ("by the final model", predict(rows, values)[forged])):
            print(f"forged, {name}: {(some < 0.1).sum()} of {forged.sum()} below 0.1, at most {some.max():.2f}")
    report([row for row, out in zip(rows, forged) if not out], right[~forged], chances[~forged])
    print()
    figures.write(figures.read())


if __name__ == "__main__":
    main()
