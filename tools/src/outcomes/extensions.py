"""Recognizes extension modules (C, C++, Rust, Cython) of the repository, whose code no Python frame shows.

Runs on Python 3.6 and later.
"""

import os
import re
import sys

from testwright_record import WORKSPACE, locate, set_extension_finder

# Folders of the workspace that may contain packages.
_FOLDERS = ("", "src", "lib", "python")
_SOURCES = ("", ".pyx", ".py", ".c", ".cpp", ".cc", ".rs")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
# The path of each extension module, or None for other modules, by name.
_KNOWN = {}
_INSTALLED = []


def _of_module(name):
    if name not in _KNOWN:
        _KNOWN[name] = _find(name)
    return _KNOWN[name]


def _find(name):
    path = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(path, str) or not path.endswith((".so", ".pyd")):
        return None
    base, shown = locate(path)
    top = name.partition(".")[0]
    return shown if base == "workspace" or _is_in_workspace(top) or top in _installed() else None


def _is_in_workspace(top):
    places = [os.path.join(WORKSPACE, folder, top) for folder in _FOLDERS]
    return any(os.path.exists(place + end) for place in places for end in _SOURCES)


def _installed():
    """Returns the top-level names of the packages that were installed from the workspace."""
    if not _INSTALLED:
        _INSTALLED.append(set())
        try:
            from importlib.metadata import distributions

            for package in distributions():
                if ("file://" + WORKSPACE) in (package.read_text("direct_url.json") or ""):
                    parts = [str(file).partition("/")[0] for file in package.files or ()]
                    _INSTALLED[0].update(part.partition(".")[0] for part in parts)
        except Exception:  # Python 3.7 and earlier, or broken metadata
            pass
    return _INSTALLED[0]


def extension_of(value):
    """Returns the path of the repository's extension module that defines a function, method, type or object."""
    try:
        return _extension_of(value)
    except Exception:  # an attribute of the object runs code
        return None


def _extension_of(value):
    names = [getattr(value, "__module__", None), getattr(type(value), "__module__", None)]
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, type(sys)):
        names.append(getattr(owner if isinstance(owner, type) else type(owner), "__module__", None))
    elif owner is not None:
        names.append(getattr(owner, "__name__", None))
    for name in names:
        found = _of_module(name) if isinstance(name, str) else None
        if found is not None:
            return found
    return None


def _resolved(name, scopes):
    """Yields the objects that a dotted name stands for, without running properties."""
    parts = name.split(".")
    found = [scope[parts[0]] for scope in scopes if parts[0] in scope][:1]
    for part in parts[1:]:
        for value in found:
            yield value
        found = [value for value in found if isinstance(value, (type(sys), type))]
        found = [getattr(value, part) for value in found if part in getattr(value, "__dict__", ())]
    for value in found:
        yield value


def named_in(text, scopes):
    """Returns the name and the path of the first function of the repository's extensions that code names."""
    for name in _NAME.findall(text):
        for value in _resolved(name, scopes):
            found = extension_of(value)
            if found is not None:
                return name.rpartition(".")[2], found
    return None


def named_by(function):
    """Returns the paths of the repository's extensions that a function names."""
    function = getattr(function, "__func__", function)
    code, scope = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    found = set()
    for name in getattr(code, "co_names", ()):
        value = scope.get(name)
        values = [value] + [getattr(value, inner, None) for inner in code.co_names if isinstance(value, type(sys))]
        found.update(extension_of(one) for one in values if one is not None)
    return found - {None}


def _raised_by(frame, line):
    """Returns the function of an extension that raised an exception on this line, if it seems so."""
    import linecache

    code = linecache.getline(frame.f_code.co_filename, line or 0, frame.f_globals).strip()
    if code.startswith(("raise", "assert ")):
        return None
    return named_in(code, (frame.f_locals, frame.f_globals))


set_extension_finder(_raised_by)
