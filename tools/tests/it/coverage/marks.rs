//! If only certain lines are requested, marks in the code report the same as a trace function; code that cannot have
//! marks is traced.

use std::collections::BTreeSet;

use super::*;

/// Versions that both pytest 8.3.5 and CPython 3.8 to 3.11 support.
const VERSIONS: [&str; 4] = ["3.8", "3.9", "3.10", "3.11"];

const FILE: &str = "pkg/__init__.py";

/// The last line never runs.
const NASTY: &str = r#"'''A text.'''
from __future__ import annotations
import asyncio, contextlib, functools
def noted(*args):
    return lambda function: function

@noted(
    1)
@noted(2) 
@functools.lru_cache(maxsize=None)
def decorated(n=(1,
                 2)):
    '''A text of its own.'''
    return n

def texts(): return decorated.__doc__, Plain.__doc__, __doc__

@noted()
class Plain(object):
    '''And another.'''
    x: int = 1
    y: "never"
    if x: z = 2; w = 3
    for i in range(2):
        pass
    else:
        v = (i
             + 1)
    def __init__(self, fails=False):
        try:
            if fails:
                raise KeyError(
                    fails)
            elif self.x == 2:
                self.x = 3
            elif self.x == 1: self.x = 2
            else:
                self.x = 4
        except (ValueError,
                TypeError):
            self.x = 5
        except KeyError as error:
            self.x = error
        except:
            raise
        else:
            self.y = 1
        finally:
            self.z = 1
    @property
    def p(self): return self.x
    @p.setter
    def p(self, value):
        self.x = value

def broken():
    raise ValueError

try:
    @noted()
    @broken()
    @noted()
    def never_made(): pass
except ValueError:
    pass

def loops(n):
    while True:
        n -= 1
        if n % 2:
            if n > 100: return
            continue
        else:
            pass
        if n < 0:
            break
        elif n == 6:
            for x in range(n):
                if x == 2: continue
                if x == 3: break
            else:
                return None
        with contextlib.suppress(KeyError), \
                contextlib.suppress(TypeError):
            if n == 4:
                raise KeyError
            n = n
    for n in []: return n
    while n > 5: n -= 1
    else: n = 0
    assert n is not None, (
        "text")
    del n
    global set_late
    set_late = 1

def made(n):
    x = yield n
    while x:
        x = yield from inner(x)
    return [y for y in range(3) if y] + [
        (lambda: y)() for y in range(2)]

def inner(x):
    try:
        yield x
    finally:
        x = 0
    return x

async def awaited(n):
    async with Entered() as entered:
        async for x in numbers(n):
            await asyncio.sleep(0)
            n += x
    return n

class Entered:
    async def __aenter__(self): return self
    async def __aexit__(self, *_):
        return False

async def numbers(n):
    for x in range(n):
        yield x

def nested():
    count = 0
    def inside():
        nonlocal count
        count += 1
        class Local:
            value = count
            def get(self): return self.value
        return Local().get()
    inside(); inside()
    return inside()

def deep(n):
    if n:
        return deep(n - 1)
    return 0

def ellipsis(): ...
def passes():
    pass
def string():
    x = 1
    "no text"
    return x
def ends():
    try:
        return 1
    finally:
        try:
            passes()
        except Exception: pass
def many(): a = 1; b = 2; return a, b
started = made(1); next(started)
if __name__ == "none":
    never = 1
"#;

const NASTY_TESTS: &str = "\
import asyncio, importlib, inspect, subprocess, sys, threading, traceback
import pkg
def test_all():
    pkg.Plain(); pkg.Plain(fails=True).p = 2
    pkg.loops(8)
    assert list(pkg.made(1)) == [1]
    given = pkg.made(1); next(given); given.send(2)
    assert asyncio.new_event_loop().run_until_complete(pkg.awaited(3)) == 6
    assert pkg.nested() == 3
    pkg.deep(50), pkg.ellipsis(), pkg.string(), pkg.ends(), pkg.many()
    assert pkg.texts() == ('A text of its own.', 'And another.', 'A text.')
    assert inspect.getsource(pkg.passes) == 'def passes():\\n    pass\\n'
    assert pkg.deep.__code__.co_firstlineno == inspect.getsourcelines(pkg.deep)[1]
    assert hash(pkg.deep.__code__) and pkg.deep.__code__.co_names == ('deep',)
    try:
        pkg.broken()
    except ValueError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        assert last.line == 'raise ValueError'
def test_depth():
    limit = sys.getrecursionlimit()
    try:
        pkg.deep(limit)
    except RecursionError:
        pass
def test_threads():
    threads = [threading.Thread(target=pkg.deep, args=(3,)) for _ in range(5)]
    [thread.start() for thread in threads]; [thread.join() for thread in threads]
def test_reload():
    importlib.reload(pkg)
";

/// Returns whether the last test had a trace function, and the measured lines.
fn asked(project: &Project, file: &str, lines: Option<&BTreeSet<u32>>) -> (bool, Coverage) {
    let mut request = request(project, &["tests"], &[file]);
    let measure = request.coverage.as_mut().unwrap();
    measure.package = coverage_for(&project.config.python);
    measure.until = lines
        .map(|lines| (file.to_owned(), lines.clone()))
        .into_iter()
        .collect();
    let answer = answer(&request);
    let tests = &answer.report.tests;
    let is_traced = test(&answer.report, "tests/test_z.py::test_traced").outcome != Outcome::Passed;
    let others = tests.iter().filter(|test| !test.id.contains("test_z"));
    for test in others {
        assert_eq!(test.outcome, Outcome::Passed, "{answer:#?}");
    }
    let coverage = answer.coverage.unwrap();
    assert_eq!((&coverage.problem, coverage.lost), (&None, 0));
    (is_traced, coverage)
}

/// Compares a measurement of some lines with a complete one, and returns whether these lines were traced too.
fn compared(project: &Project, file: &str, lines: impl Fn(&str) -> bool) -> bool {
    let (is_traced, all) = asked(project, file, None);
    assert!(is_traced);
    let text = std::fs::read_to_string(project.root().join(file)).unwrap();
    let text: Vec<&str> = text.lines().collect();
    let file_coverage = &all.files[file];
    let statements = file_coverage.statements.iter().copied();
    let wanted_lines: BTreeSet<u32> = statements
        .filter(|line| lines(text[*line as usize - 1]))
        .collect();
    // One of them never runs, so measuring continues to the end.
    assert!(
        wanted_lines
            .iter()
            .any(|line| !file_coverage.executed.contains(line))
    );
    let (is_traced, some) = asked(project, file, Some(&wanted_lines));
    let of = |lines: &[u32]| -> Vec<(u32, String)> {
        let lines = lines.iter().filter(|line| wanted_lines.contains(*line));
        lines
            .map(|line| (*line, text[*line as usize - 1].to_owned()))
            .collect()
    };
    assert_eq!(of(&some.files[file].executed), of(&file_coverage.executed));
    assert_eq!(of(&some.files[file].called), of(&file_coverage.called));
    assert_eq!(some.files[file].statements, file_coverage.statements);
    is_traced
}

fn with(version: &str, files: &[(&str, &str)]) -> Option<Project> {
    let base = interpreter(version)?;
    let mut files = files.to_vec();
    let traced = "import sys\ndef test_traced(): assert sys.gettrace() is None\n";
    files.push(("tests/test_z.py", traced));
    let mut project = Project::new(&files);
    let name = format!("{version}-pytest-8.3.5");
    project.config.python = environment(&name, Some(&base), &["pytest==8.3.5"]);
    Some(project)
}

#[test]
fn marks_match_trace_function() {
    for version in VERSIONS {
        let files = [(FILE, NASTY), ("tests/test_a.py", NASTY_TESTS)];
        let Some(project) = with(version, &files) else {
            continue;
        };
        let is_jump = |line: &str| ["continue", "break", "pass"].contains(&line.trim());
        let is_old = ["3.8", "3.9"].contains(&version);
        let cannot = |line: &str| line.contains("__future__") || is_old && is_jump(line);
        let is_traced = compared(&project, FILE, |line| !cannot(line));
        assert!(!is_traced, "{version}");
        // These lines cannot have marks.
        assert!(compared(&project, FILE, |_| true), "{version}");
    }
}

const SIMPLE: &str = "\
def plain(n):
    if n:
        return 1
    return 0
if __name__ == 'none':
    never = 1
";

#[test]
fn code_without_marks_is_traced() {
    let compiled = "exec(compile(open(pkg.__file__).read(), pkg.__file__, 'exec'), scope)";
    let loaded = "\
class Own(importlib.machinery.SourceFileLoader):
        pass
    spec = importlib.util.spec_from_loader('other', Own('other', pkg.__file__))
    other = importlib.util.module_from_spec(spec); spec.loader.exec_module(other); scope = vars(other)";
    let same = "\
spec = importlib.util.spec_from_file_location('other', pkg.__file__)
    other = importlib.util.module_from_spec(spec); spec.loader.exec_module(other); scope = vars(other)";
    let function = "\
code = [c for c in compile(open(pkg.__file__).read(), pkg.__file__, 'exec').co_consts if hasattr(c, 'co_code')][0]
    scope['plain'] = type(lambda: 0)(code, {})";
    let replaced = "scope['plain'] = type(lambda: 0)(pkg.plain.__code__.replace(co_name='x'), {})";
    let changed = "\
text = open(pkg.__file__).read()
    open(pkg.__file__, 'w').write(text.replace('return 0', 'return 7'))
    importlib.invalidate_caches(); importlib.reload(pkg); scope = vars(pkg)
    open(pkg.__file__, 'w').write(text)
    assert pkg.plain(0) == 7";
    for (body, expected) in [
        (compiled, true),
        ("scope = runpy.run_path(pkg.__file__)", true),
        ("scope = runpy.run_module('pkg.__init__')", false),
        (loaded, true),
        (same, false),
        (function, true),
        (replaced, true),
        (changed, true),
        // Code that only parses the file counts as compiling it.
        (
            "scope['plain'] = pkg.plain; compile(open(pkg.__file__).read(), pkg.__file__, 'exec', 0x400)",
            true,
        ),
        (
            "scope['plain'] = pkg.plain; compile('1', 'pkg', 'exec'); exec('1')",
            false,
        ),
        (
            "del sys.modules['pkg']; scope = vars(importlib.import_module('pkg'))",
            false,
        ),
        (
            "subprocess.check_call([sys.executable, '-c', 'import pkg; pkg.plain(1)'])\n    scope = vars(pkg)",
            false,
        ),
        (
            "subprocess.check_call([sys.executable, pkg.__file__])\n    scope = vars(pkg)",
            false,
        ),
        (
            "subprocess.check_call([sys.executable, '-m', 'pkg.__init__'])\n    scope = vars(pkg)",
            false,
        ),
    ] {
        let tests = format!(
            "import importlib.util, runpy, subprocess, sys\nimport pkg\ndef test_x():\n    scope = {{}}\n    {body}\n    \
             scope['plain'](0)\n"
        );
        for version in ["3.8", "3.11"] {
            let Some(project) = with(version, &[(FILE, SIMPLE), ("tests/test_a.py", &tests)])
            else {
                continue;
            };
            let is_traced = compared(&project, FILE, |_| true);
            assert_eq!(is_traced, expected, "{version}: {body}");
        }
    }
}

#[test]
fn early_imports_and_rewritten_files_are_traced() {
    let tests = "from pkg import plain\ndef test_x(): plain(1)\n";
    let conftest = "pytest_plugins = ['pkg']\n";
    let early = "import pkg\n";
    for (more, expected) in [
        (("pkg/none.py", ""), false),
        (("conftest.py", conftest), true),
        (("sitecustomize.py", early), true),
    ] {
        let files = [(FILE, SIMPLE), ("tests/test_a.py", tests), more];
        let Some(project) = with("3.11", &files) else {
            return;
        };
        assert_eq!(compared(&project, FILE, |_| true), expected, "{more:?}");
    }
}

/// New code objects cannot be observed before Python 3.8.
#[test]
fn older_interpreters_use_tracing() {
    let Some(base) = interpreter("3.7") else {
        return;
    };
    let tests = "import pkg\ndef test_x(): pkg.plain(1)\n";
    let Some(mut project) = with("3.11", &[(FILE, SIMPLE), ("tests/test_a.py", tests)]) else {
        return;
    };
    project.config.python = environment("3.7-pytest-7.4.4", Some(&base), &["pytest==7.4.4"]);
    assert!(compared(&project, FILE, |_| true));
}
