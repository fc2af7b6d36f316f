//! Tests of the pytest runner.

mod extensions;
mod options;
mod outcomes;
mod plugins;
mod processes;
mod trace;
mod versions;

use crate::project::Project;

const PKG: &str = "\
def half(n):
    if n == 13:
        raise ValueError('unlucky %d at %r' % (n, object()))
    assert n >= 0
    return n // 2

def call(f):
    return f()
";

fn pkg(test: &str) -> Project {
    Project::new(&[("pkg/__init__.py", PKG), ("tests/test_a.py", test)])
}
