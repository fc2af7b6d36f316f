"""Records which of some lines run, without a trace function: when their files are imported, a mark is inserted before
each statement that begins in one of these lines.

Before Python 3.12, a trace function slows down the whole program; a mark costs only one dictionary lookup. A mark is an
expression of constants, without names, calls or frames. So code that inspects the program finds the same names, lines,
calls and docstrings as in the file. Code of these files that is not created by an import has no marks: an audit hook
detects it before it runs, and reports it.

A mark records that a statement begins. So it shows that a line ran exactly as a trace function does. It does not show
that a line ran since the first test if its statement began earlier: a lambda of the line that is called later, or the
end of a `with` block.

For CPython 3.8 to 3.11. `driver.py` loads this module before any module of the program is imported.
"""

import _ast
import _frozen_importlib_external
import _thread
import _warnings
import os
import sys
from _collections import defaultdict

_getpid, _PID = os.getpid, os.getpid()
_realpath, _isabs, _fsdecode, _ident = os.path.realpath, os.path.isabs, os.fsdecode, _thread.get_ident
_Loader = _frozen_importlib_external.SourceFileLoader
_Code = type(_realpath.__code__)
# Placeholder for the marks until the code exists, since only such constants can be compiled.
_MARKS = "testwright marks " + os.urandom(16).hex()
# Attributes of code that marks do not change.
_ALIKE = ("co_name", "co_firstlineno", "co_flags", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount")
_ALIKE += ("co_names", "co_varnames", "co_freevars", "co_cellvars")
# Before Python 3.10, a jump to one of these may go directly to its target.
_JUMPS = (_ast.Continue, _ast.Break, _ast.Pass) if sys.version_info < (3, 10) else ()


class Lines(defaultdict):
    """Lines that ran, as keys: reading a key adds it. The value is false."""

    # The hash of code includes its constants.
    __hash__ = object.__hash__

    def __reduce__(self):
        # Other processes do not use the marks.
        return defaultdict, (int,)


class _Marker(object):
    """Puts marks into the syntax tree of a file."""

    def __init__(self, lines):
        self.lines, self.marked, self.refused = lines, set(), set()

    def has_all(self):
        return self.marked - self.refused >= self.lines

    def mark(self, line, at):
        """Returns a mark. Its key is a string, since the placeholder is a string too, which a number could index."""
        self.marked.add(line)
        place = _place(at)
        key = _ast.Constant(value=str(line), kind=None, **place)
        if sys.version_info < (3, 9):
            key = _ast.Index(value=key)
        marks = _ast.Constant(value=_MARKS, kind=None, **place)
        return _ast.Subscript(value=marks, slice=key, ctx=_ast.Load(), **place)

    def statement(self, line, at):
        return _ast.Expr(value=self.mark(line, at), **_place(at))

    def visit(self, node):
        for name in node._fields:
            children = getattr(node, name, None)
            if not isinstance(children, list) or not children:
                continue
            if isinstance(children[0], _ast.stmt):
                children[:] = self.statements(node, name, children)
            elif isinstance(children[0], _ast.excepthandler):
                for handler in children:
                    first = self.handler(handler)
                    self.visit(handler)
                    handler.body[:0] = first
            elif type(children[0]).__name__ == "match_case":
                for case in children:
                    self.visit(case)

    def statements(self, node, name, children):
        found = []
        for at, child in enumerate(children):
            decorators = getattr(child, "decorator_list", [])
            first = decorators[0] if decorators else child
            if first.lineno in self.lines:
                if _JUMPS and isinstance(child, _JUMPS):
                    # Possible only if another statement of the line comes first.
                    self.refused.update({first.lineno} - self.marked)
                elif name == "body" and _is_fixed(node, at, child) or _is_empty(child):
                    self.refused.add(first.lineno)
                else:
                    found.append(self.statement(first.lineno, first))
            self.decorated(decorators, child)
            self.visit(child)
            found.append(child)
        return found

    def decorated(self, decorators, child):
        """Marks the lines of decorators: each runs after the one above it, and the line of `def` or `class` after the
        last."""
        below = [decorator.lineno for decorator in decorators[1:]] + [child.lineno]
        for at, decorator in enumerate(decorators):
            if below[at] in self.lines:
                place = _place(decorator)
                both = _ast.Tuple(elts=[decorator, self.mark(below[at], decorator)], ctx=_ast.Load(), **place)
                first = _ast.Constant(value=0, kind=None, **place)
                if sys.version_info < (3, 9):
                    first = _ast.Index(value=first)
                decorators[at] = _ast.Subscript(value=both, slice=first, ctx=_ast.Load(), **place)

    def handler(self, handler):
        """Returns the statements to insert first in the handler's body."""
        if handler.lineno not in self.lines:
            return []
        if handler.type is None:
            return [self.statement(handler.lineno, handler)]
        either = [self.mark(handler.lineno, handler), handler.type]
        handler.type = _ast.BoolOp(op=_ast.Or(), values=either, **_place(handler.type))
        return []


def _place(at):
    return dict(lineno=at.lineno, col_offset=at.col_offset, end_lineno=at.lineno, end_col_offset=at.col_offset)


def _is_text(statement):
    if not isinstance(statement, _ast.Expr) or not isinstance(statement.value, _ast.Constant):
        return False
    return isinstance(statement.value.value, str)


def _is_fixed(node, at, child):
    """Returns whether inserting code before it would change its meaning: a docstring, or a `__future__` import."""
    if isinstance(child, _ast.ImportFrom):
        return child.module == "__future__"
    documented = (_ast.Module, _ast.ClassDef, _ast.FunctionDef, _ast.AsyncFunctionDef)
    return at == 0 and _is_text(child) and isinstance(node, documented)


def _is_empty(child):
    """Returns whether a function has only a docstring; then its first line is what runs."""
    is_function = isinstance(child, (_ast.FunctionDef, _ast.AsyncFunctionDef))
    return is_function and len(child.body) == 1 and _is_text(child.body[0])


def _compiled(source, path, lines):
    """Returns the code of a file with placeholders for marks before these lines; None if one of them cannot have a
    mark."""
    # Suppress the file's own warnings: they appear when it is imported.
    _warnings.filters.insert(0, ("ignore", None, Warning, None, 0))
    try:
        tree = compile(source, path, "exec", 0x400, True)  # only the syntax tree
        marker = _Marker(lines)
        marker.visit(tree)
        return compile(tree, path, "exec", 0, True) if marker.has_all() else None
    finally:
        del _warnings.filters[0]


def _with(marks, path, code):
    consts = []
    for const in code.co_consts:
        if isinstance(const, _Code):
            const = _with(marks, path, const)
        consts.append(marks if isinstance(const, str) and const == _MARKS else const)
    return code.replace(co_consts=tuple(consts), co_filename=path)


def _are_alike(one, other):
    if any(getattr(one, name) != getattr(other, name) for name in _ALIKE):
        return False
    # Compare the docstrings of functions.
    if one.co_flags & 1 and one.co_consts[:1] != other.co_consts[:1]:
        return False
    inner, others = ([const for const in code.co_consts if isinstance(const, _Code)] for code in (one, other))
    return len(inner) == len(others) and all(map(_are_alike, inner, others))


class _File(object):
    def __init__(self, source, code):
        self.source, self.code, self.lines = source, code, Lines(int)


class Marks(object):
    """The marks of all files. `asked` holds the requested lines by path. `runs` is called when one of the files runs,
    and `is_unmarked` when code without marks is about to run."""

    def __init__(self, asked, runs, is_unmarked):
        self.asked, self.runs, self.is_unmarked = asked, runs, is_unmarked
        self.files = {}
        # Path of the file by the code's own file name; None for other files.
        self.known = {}
        # Code with marks, by id; and threads that are creating such code.
        self.made, self.making = {}, set()
        self.has_ended = False

    def prepare(self):
        """Returns whether all lines can have marks, and none of the files is imported yet."""
        for path, lines in self.asked.items():
            try:
                with open(path, "rb") as file:
                    source = file.read()
                code = _compiled(source, path, lines)
            except Exception:
                return False
            if code is None:
                return False
            self.files[path] = _File(source, code)
        origins = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        return not any(isinstance(origin, str) and self.of_file(origin) for origin in origins)

    def begin(self):
        self.getter = _Getter(self, _Loader.get_code)
        _Loader.get_code = self.getter
        sys.addaudithook(self.hook())

    def end(self):
        """Ends the recording. Marked code still adds lines, which are ignored."""
        self.has_ended = True
        if _Loader.__dict__.get("get_code") is self.getter:
            del _Loader.get_code

    def take(self):
        """Returns the lines that ran since the previous call, by path."""
        taken = {}
        for path, file in self.files.items():
            taken[path] = self.ran(path)
            for line in taken[path]:
                # Remove one at a time, since a thread may add others meanwhile.
                file.lines.pop(str(line), None)
        return taken

    def ran(self, path):
        return set(int(line) for line in list(self.files[path].lines))

    def of_file(self, name):
        try:
            return self.known[name]
        except KeyError:
            if name.startswith("<"):
                return None
            real = _realpath(name)
            path = real if real in self.files else None
            if _isabs(name):
                self.known[name] = path
            return path

    def code(self, loader, name, original):
        """Replaces `SourceFileLoader.get_code`, which it calls for everything else."""
        file = self.files[self.of_file(loader.path)]
        self.making.add(_ident())
        try:
            plain = original(loader, name)
            code = _with(file.lines, plain.co_filename, file.code)
            is_same = loader.get_data(loader.path) == file.source and _are_alike(plain, code)
        finally:
            self.making.discard(_ident())
        if not is_same:
            self.is_unmarked()
            return plain
        self.made[id(code)] = code
        return code

    def hook(self):
        events = frozenset(("exec", "compile", "code.__new__", "cpython.run_file"))

        def audit(event, args):
            if event in events and not self.has_ended:
                self.audited(event, args)

        return audit

    def audited(self, event, args):
        try:
            if event == "exec":
                code = args[0]
                name = getattr(code, "co_filename", None)
                if id(code) in self.made:
                    self.runs()
                    return
            else:
                name = args[0] if event == "cpython.run_file" else args[1]
                if event == "cpython.run_file" and name.endswith(".pyc"):
                    # Its content is unknown.
                    self.is_unmarked()
                    return
                name = _fsdecode(name) if isinstance(name, bytes) else name
            if not isinstance(name, str) or self.of_file(name) is None or _ident() in self.making:
                return
        except Exception:
            pass
        self.is_unmarked()


class _Getter(object):
    """A class attribute that returns the original function, except for loaders of the files."""

    def __init__(self, marks, original):
        self.marks, self.original = marks, original

    def __get__(self, loader, owner=None):
        original, marks = self.original, self.marks
        try:
            # A subclass may load code differently.
            if type(loader) is _Loader and not marks.has_ended and marks.of_file(loader.path) is not None:
                return lambda fullname: marks.code(loader, fullname, original)
        except Exception:
            pass
        return original.__get__(loader, owner)


def kind(base, tests):
    """Returns the class that measures, derived from the one that traces. `tests` is the context since the first
    test."""

    class Marked(base):
        """Measures only the requested lines. If a line cannot have a mark, everything is traced. Code without marks is
        traced from the moment it is detected."""

        def __init__(self, settings):
            base.__init__(self, settings)
            self.marks, self.is_marked = Marks(self.unseen, self.runs, self.is_unmarked), False
            # Lines by path that ran before the first test.
            self.before = {}

        def begin(self, context):
            self.is_marked = self.marks.prepare()
            base.begin(self, context)

        def trace(self, context):
            if not self.is_marked:
                base.trace(self, context)
                return
            self.has_tests = context is not None
            # Prepare tracing now, since it may begin at any time.
            self.coverage.start()
            self.coverage.stop()
            self.marks.begin()

        def is_unmarked(self):
            if self.tracer is not None or self.has_ended or _getpid() != _PID:
                return
            if sys.gettrace() is not None:
                self.note("there was a trace function already when code was to be traced")
                return
            if len(sys._current_frames()) > 1:
                self.note("there were threads already when code was to be traced")
            try:
                base.trace(self, tests if self.has_tests else None)
            except Exception as error:
                self.note("code could not be traced: %s: %s" % (type(error).__name__, error))

        def is_started(self):
            return self.is_marked and self.tracer is None or base.is_started(self)

        def tests_begin(self):
            if self.is_marked:
                self.before = self.marks.take()
            if self.tracer is not None:
                base.tests_begin(self)

        def ran(self, path):
            lines = set(base.ran(self, path))
            return lines | self.marks.ran(path) if self.is_marked else lines

        def end(self):
            base.end(self)
            if not self.is_marked:
                return
            self.marks.end()
            data, now = self.coverage.get_data(), self.marks.take()
            before, now = (self.before, now) if self.has_tests else (now, {})
            for context, lines in (("", before), (tests, now)):
                data.set_context(context)
                data.add_lines(lines)

    return Marked
