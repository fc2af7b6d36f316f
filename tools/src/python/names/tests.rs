#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn names(source: &str) -> Vec<String> {
    let module = Module::parse(source);
    assert!(
        module.errors().is_empty(),
        "{source}: {:?}",
        module.errors()
    );
    undefined_names(&module)
        .into_iter()
        .map(|u| u.name)
        .collect()
}

#[test]
fn undefined_names_are_found() {
    assert_eq!(names("import a\nprint(a, b)\n"), ["b"]);
    assert_eq!(names("def f(x=y):\n    return x + z\n"), ["y", "z"]);
    assert_eq!(
        names("class A(B):\n    n = 1\n    def f(self):\n        return n\n"),
        ["B", "n"]
    );
    assert_eq!(names("@deco\ndef f(): pass\n"), ["deco"]);
    assert_eq!(names("def f():\n    x = 1\nx\n"), ["x"]);
    assert_eq!(names("[i for i in xs]\ni\n"), ["xs", "i"]);
    assert_eq!(names("f'{who!r:>{width}}'\n"), ["who", "width"]);
    assert_eq!(names("g(key=value)\n"), ["g", "value"]);
    assert_eq!(
        names("match x:\n    case Point(a=1): pass\n"),
        ["x", "Point"]
    );
    assert_eq!(
        names("with pytest.raises(E) as info:\n    info\n"),
        ["pytest", "E"]
    );
}

#[test]
fn outer_names_belong_to_module() {
    let source = "import a, b, c, d\nfrom e import f\nK = 1\nL = 2\nclass C:\n    z = 0\n    @a.deco\n    def m(self, b, x: f = K) -> d.T:\n        \
                  'c'\n        for L in b: pass\n        return z(len(x), print)\n";
    let module = Module::parse(source);
    let method = module.find("C.m").remove(0);
    let names = outer_names(&module, &method.bytes);
    let mut bound: Vec<&str> = names.bound.iter().map(String::as_str).collect();
    bound.sort_unstable();
    assert_eq!((bound, names.others), (vec!["K", "a", "d", "f"], true));
}

#[test]
fn bound_names_raise_no_alarm() {
    for source in [
        "import a.b as c, d.e\nfrom . import f as g\nc, d, g\n",
        "def f(a, *b, c=1, d: int = 2, **e):\n    return a, b, c, d, e, f\n",
        "class A:\n    n = 1\n    m = n\n    o = [n for _ in range(n)]\n    def f(self): return __class__, A\n",
        "if (n := 10) > 5:\n    print(n)\nprint([y := 1, y**2], [z := i for i in range(3)], z)\n",
        "try:\n    pass\nexcept ValueError as e:\n    print(e)\n",
        "with open('x') as f, open('y') as (g, h):\n    f, g, h\n",
        "for i, (j, *k) in []:\n    i, j, k\nelse:\n    i\n",
        "match x_ := 1:\n    case [a, *b]: a, b\n    case {'k': c, **d}: c, d\n    case int(e) | str(e): e\n    case (1 as g): g\n    case h: h\n",
        "def f[T](x: T) -> T:\n    return T\nclass B[U: int]:\n    v = U\ntype X[V] = list[V]\nX\n",
        "def f():\n    global late\n    late = 1\nlate\n",
        "def f(x: Undefined) -> 'Gone':\n    y: Missing = 1\n    return y\n",
        "try:\n    unicode_\nexcept NameError:\n    unicode_ = str\n",
        "from x import *\nanything\n",
        "exec('a = 1')\na\n",
        "lambda x, *y, z=1, **k: (x, y, z, k)\n",
        "def outer():\n    v = 1\n    def inner():\n        nonlocal v\n        v = 2\n    return inner\n",
        "x = y = 1\n[a, b] = x, y\n(c, d) = a, b\nprint(c, d)\n",
        "from __future__ import division\nimport os\ndel os, division\nprint(__file__, __name__, WindowsError, unicode)\n",
        "async def f():\n    async for x in y():\n        async with x as z:\n            await z\ndef y(): pass\n",
        "{k: v for k, v in {}.items() if k}\n{a for a in []}\nlist(b for c in [] for b in c)\n",
        "x: int\ndef f(): return x\nx = 1\n",
    ] {
        assert!(names(source).is_empty(), "{source}: {:?}", names(source));
    }
}
