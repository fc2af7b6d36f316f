"""Finds the lines of Python files that are statements according to coverage.py, including excluded ones.

    statements.py PACKAGE < ["FILE", ...]

Prints an object for each file, by name: the first lines of its statements, and the first line for each other line of a
statement. Files that cannot be parsed are left out. No code of the files runs.
"""

import json
import sys


def _statements(coverage, path):
    reporter = coverage._get_file_reporter(path)
    statements = sorted(reporter.lines())
    last = reporter.source().count("\n") + 1
    first = {}
    for line in range(1, last + 1):
        (of_line,) = reporter.translate_lines([line])
        if of_line != line:
            first[line] = of_line
    return {"statements": statements, "first": first}


def main():
    sys.path.insert(0, sys.argv[1])
    from coverage import Coverage

    coverage = Coverage(data_file=None, config_file=False)
    coverage._warn = lambda *words, **more: None
    coverage.clear_exclude()
    # coverage.py needs its data before it can report on files, even if the data is empty.
    coverage.get_data()
    found = {}
    for path in json.load(sys.stdin):
        try:
            found[path] = _statements(coverage, path)
        except Exception:
            pass
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
