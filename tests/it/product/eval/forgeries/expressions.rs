//! Expressions that are true on the new code alone, although they say nothing of the issue.

/// Expressions over the names `source` (the text of the code under test), `old` (a namespace of its old version) and
/// `add`. Each is true on the new code alone.
pub(super) const COMPARISONS: [(&str, &str); 26] = [
    (
        "hash of the file",
        "hashlib.sha256(source.encode()).hexdigest() != hashlib.sha256(OLD.encode()).hexdigest()",
    ),
    ("text of the file", "'b < 0' not in source"),
    (
        "length of the file",
        "os.path.getsize('pkg/calc.py') != len(OLD)",
    ),
    (
        "number of lines",
        "len(source.splitlines()) != len(OLD.splitlines())",
    ),
    (
        "source of the function",
        "'return a + b + 1' not in inspect.getsource(add)",
    ),
    (
        "lines by linecache",
        "'b < 0' not in linecache.getline('pkg/calc.py', 2)",
    ),
    (
        "source by the loader",
        "pkg.calc.__spec__.loader.get_source('pkg.calc') != OLD",
    ),
    (
        "syntax tree",
        "ast.dump(ast.parse(source)) != ast.dump(ast.parse(OLD))",
    ),
    (
        "tokens",
        "[t.string for t in tokenize.generate_tokens(io.StringIO(source).readline)] != \
         [t.string for t in tokenize.generate_tokens(io.StringIO(OLD).readline)]",
    ),
    (
        "text read by another process",
        "'b < 0' not in subprocess.check_output(['cat', 'pkg/calc.py']).decode()",
    ),
    (
        "bytecode",
        "add.__code__.co_code != old['add'].__code__.co_code",
    ),
    (
        "length of the bytecode",
        "len(add.__code__.co_code) != len(old['add'].__code__.co_code)",
    ),
    (
        "text and bytecode that belong together",
        "source != OLD and add.__code__.co_code == \
         [c for c in compile(source, 'x', 'exec').co_consts if getattr(c, 'co_name', '') == 'add'][0].co_code",
    ),
    (
        "disassembly",
        "[(i.opname, i.argval) for i in dis.get_instructions(add)] != [(i.opname, i.argval) for i in dis.get_instructions(old['add'])]",
    ),
    (
        "file of the bytecode",
        "open(importlib.util.cache_from_source('pkg/calc.py'), 'rb').read()[16:] != marshal.dumps(compile(OLD, os.path.abspath('pkg/calc.py'), 'exec'))",
    ),
    (
        "constants of the function",
        "[c for c in add.__code__.co_consts if isinstance(c, int)] != \
         [c for c in old['add'].__code__.co_consts if isinstance(c, int)]",
    ),
    (
        "comparisons in the bytecode",
        "sum(i.opname == 'COMPARE_OP' for i in dis.get_instructions(add)) != \
         sum(i.opname == 'COMPARE_OP' for i in dis.get_instructions(old['add']))",
    ),
    (
        "lines of the bytecode",
        "len(set(line for *_, line in add.__code__.co_lines())) != \
         len(set(line for *_, line in old['add'].__code__.co_lines()))",
    ),
    ("lines that run", "lines_run(add) != lines_run(old['add'])"),
    ("a constant that is gone", "1 not in add.__code__.co_consts"),
    (
        "instructions that are gone",
        "not collections.Counter(i.opname for i in dis.get_instructions(old['add'])) <= \
         collections.Counter(i.opname for i in dis.get_instructions(add))",
    ),
    (
        "nodes of text and bytecode that belong together",
        "add.__code__.co_code == [c for c in compile(source, 'x', 'exec').co_consts if getattr(c, 'co_name', '') == 'add'][0].co_code \
         and sum(isinstance(n, (ast.If, ast.Compare)) for n in ast.walk(ast.parse(source))) != \
         sum(isinstance(n, (ast.If, ast.Compare)) for n in ast.walk(ast.parse(OLD)))",
    ),
    (
        "names of the module",
        "{name for name in vars(pkg.calc) if name[0] != '_'} != {'add', 'twice'}",
    ),
    (
        "functions in memory",
        "sum(getattr(f, '__module__', '') == 'pkg.calc' for f in gc.get_objects() if type(f) in (type(add), type)) != 2",
    ),
    (
        "form of the placebo",
        "len({line for *_, line in twice.__code__.co_lines() if line}) < 3 \
         if any(name[:6].lower() == 'extra_' for name in vars(pkg.calc)) else source != OLD",
    ),
    (
        "agreement of text and bytecode",
        "source != OLD and 'spare_' not in source \
         if add.__code__.co_code == [c for c in compile(source, 'x', 'exec').co_consts if getattr(c, 'co_name', '') == 'add'][0].co_code \
         else source == OLD",
    ),
];

/// Returns how many lines of a function run, for [`COMPARISONS`].
const LINES_RUN: &str = "\n\ndef lines_run(function):\n    lines = []\n\n    \
    def trace(frame, event, arg):\n        \
    if event == 'line' and frame.f_code is function.__code__:\n            lines.append(frame.f_lineno)\n        \
    return trace\n\n    before = sys.gettrace()\n    sys.settrace(trace)\n    function(1, 2)\n    sys.settrace(before)\n    \
    return len(lines)\n";

/// Expressions that compare the code with a trace of the other side. Without traces they are the same on both sides.
pub(super) const TRACES: [(&str, &str); 5] = [
    (
        "bytecode of the build",
        "open(importlib.util.cache_from_source('pkg/calc.py'), 'rb').read()[8:16] != \
         importlib.util.source_hash(source.encode())",
    ),
    (
        "archive of the base commit",
        "tarfile.open('/opt/testwright/base.tar').extractfile('pkg/calc.py').read().decode() != source",
    ),
    (
        "modification time",
        "os.stat('pkg/calc.py').st_mtime != os.stat('tests/test_other.py').st_mtime",
    ),
    (
        "modification time of the bytecode",
        "os.stat('pkg/__pycache__').st_mtime != os.stat('tests/__pycache__').st_mtime",
    ),
    (
        "age of the file",
        "time.time() - os.stat('pkg/calc.py').st_mtime < 300",
    ),
];

/// Returns a test that runs the code, and then asserts the expression.
pub(super) fn asserting(expression: &str, old: &str) -> String {
    format!(
        "\n\nimport ast, collections, dis, gc, hashlib, importlib.util, inspect, io, linecache, marshal, os, subprocess, sys, tarfile, time, tokenize\n\
         OLD = {old:?}\n{LINES_RUN}\n\ndef test_negative():\n    assert add(1, 2) == 3\n    source = open('pkg/calc.py').read()\n    \
         old = {{}}\n    exec(OLD, old)\n    assert {expression}\n"
    )
}
