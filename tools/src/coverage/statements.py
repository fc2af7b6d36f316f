"""Which lines of Python files are statements, as coverage.py sees them, whatever is marked as not to be counted.

    statements.py PACKAGE < ["FILE", ...]

Prints an object by name of the file: the first lines of its statements, and for each other line of theirs the first one.
A file that cannot be parsed is left out. Nothing of the files is run.
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
    # Files are found by what was measured: nothing.
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
