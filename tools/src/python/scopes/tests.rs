#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::python::{Module, flatten};

#[test]
fn scopes_match_parsed_outline() {
    for text in [
        "import a\n\n@deco(\n    1)\n# why\n@other\nclass A(B):\n    '''Docs\ndef no(): pass\n'''\n    x = [\n1,\n]\n\n    def f(self,\n  b=1):\n        s = 'it\\'s' + \"#\"\n        def inner(): return 1\n        return s\n    # a comment\n    async def g(self): pass\n\n# after\ndef last():\n    if a: \\\n  b\n    return (1,\n2)\n",
        "class A: pass\nclass B:\n\tdef f(self):\n\t\tpass\n",
        "def f():\r\n    x = '''a\r\n'''\r\n    return x\r\n\r\ny = 1\r\n",
        "def f():\n    return r'\\'\ndef g():\n    return 1",
        "classy = 1\ndefine = 2\nif a:\n    def f():\n        pass\nelse:\n    def f():\n        pass\n",
        "def f[T](x: T): pass\nclass C[T]: pass\n",
        "def f():\n    pass\n\x0cdef g():\n    pass\n \x0c    # g\n",
    ] {
        let module = Module::parse(text);
        let outline = module.outline();
        let expected: Vec<Scope> = flatten(&outline)
            .into_iter()
            .map(|d| Scope {
                qualified: d.qualified.clone(),
                first: d.first,
                last: d.last,
            })
            .collect();
        if module.errors().is_empty() {
            assert_eq!(scopes(text), expected, "{text}");
        }
    }
}

#[test]
fn broken_code_terminates() {
    for text in [
        "def f(\n",
        "'''",
        "x = 'a\ndef f(): pass",
        "def",
        "\\",
        "@",
        "class A(",
        "\"\\",
    ] {
        scopes(text);
    }
    let parsed_scopes = scopes("x = 'a\ndef f(): pass\n");
    assert_eq!(Scope::innermost(&parsed_scopes, 2).unwrap().qualified, "f");
}
