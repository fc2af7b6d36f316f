"""Reports the modules that a pytest process has loaded, with their origins, and flushes its output.

Runs on Python 3.6 and later.
"""

import importlib.util
import os
import sys

from testwright_record import relative

_LOADERS = ("_frozen_importlib", "_frozen_importlib_external")


def is_test_file(path):
    name = os.path.basename(path)
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def files():
    """Returns the loaded files below the workspace."""
    found = set()
    for module in list(sys.modules.values()):
        name = getattr(module, "__file__", None)
        if isinstance(name, str):
            found.update(relative(path) for path in (os.path.abspath(name), os.path.realpath(name)))
    found.discard(None)
    return found


def _origin(spec):
    """Returns the origin of a module from one of Python's own loaders; None for pytest's loaders, which load tests."""
    loader = getattr(spec, "loader", None)
    if getattr(loader, "__module__", None) not in _LOADERS:
        return None
    return spec.origin or "namespace"


def loaded():
    """Returns name and origin of each module that is not a test."""
    found = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        origin = _origin(spec)
        if origin is not None and spec.name == name and not is_test_file(origin):
            found.append([name, origin])
    return found


def is_found(name, origin):
    """Returns whether the module still has the same origin, without the path entries that collection adds."""
    try:
        spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):
        return False
    return spec is not None and _origin(spec) == origin


def flush(config):
    reporter = config.pluginmanager.getplugin("terminalreporter")
    writer = getattr(reporter, "_tw", None)
    for stream in (getattr(writer, "_file", None), sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        method = getattr(stream, "flush", None)
        if method is not None:
            method()
