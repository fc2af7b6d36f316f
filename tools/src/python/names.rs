//! Names that are used and defined nowhere.
//!
//! A false alarm refuses a good test, so every doubt is decided for the code: star imports, `exec` and
//! `globals()` silence the whole file; annotations and strings are not looked at; the order of statements
//! does not count; code under `try … except NameError` may use what it likes.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::Node;

use super::Module;
use super::builtins::is_builtin;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undefined {
    pub name: String,
    /// Of its first use, counted from 1.
    pub line: usize,
}

/// The undefined names of a module, each once, in order of first use.
pub fn undefined_names(module: &Module) -> Vec<Undefined> {
    let walk = Walk::over(module, false);
    if walk.anything_goes {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for used in walk.uses.iter().filter(|used| !used.guarded) {
        if !is_builtin(used.name) && !walk.is_bound(used.name, used.scope) && seen.insert(used.name)
        {
            found.push(Undefined {
                name: used.name.to_owned(),
                line: used.line,
            });
        }
    }
    found
}

/// Names that a stretch of a module takes from the module's own level, annotations included.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OuterNames {
    /// Bound there: by an import, an assignment, a definition.
    pub bound: HashSet<String>,
    /// It also uses a name that nothing binds, as a star import may do.
    pub others: bool,
}

pub fn outer_names(module: &Module, stretch: &Range<usize>) -> OuterNames {
    let walk = Walk::over(module, true);
    let mut found = OuterNames::default();
    for used in walk.uses.iter().filter(|used| stretch.contains(&used.at)) {
        match walk.binder(used.name, used.scope) {
            Some(0) => {
                found.bound.insert(used.name.to_owned());
            }
            Some(_) => {}
            None => found.others |= !is_builtin(used.name),
        }
    }
    found
}

/// The undefined names that `before` did not have.
pub fn new_undefined_names(before: Option<&Module>, after: &Module) -> Vec<Undefined> {
    let old: HashSet<String> = before
        .map(|m| undefined_names(m).into_iter().map(|u| u.name).collect())
        .unwrap_or_default();
    let mut new = undefined_names(after);
    new.retain(|u| !old.contains(&u.name));
    new
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    Module,
    Class,
    Function,
    Comprehension,
}

struct Scope<'m> {
    kind: ScopeKind,
    parent: Option<usize>,
    bound: HashSet<&'m str>,
}

impl Scope<'_> {
    fn new(kind: ScopeKind, parent: Option<usize>) -> Self {
        Scope {
            kind,
            parent,
            bound: HashSet::new(),
        }
    }
}

struct Use<'m> {
    name: &'m str,
    scope: usize,
    line: usize,
    /// Where it stands, in bytes.
    at: usize,
    /// Inside of a `try` that catches a NameError.
    guarded: bool,
}

struct Walk<'m> {
    module: &'m Module,
    scopes: Vec<Scope<'m>>,
    uses: Vec<Use<'m>>,
    /// How many `try` blocks around the place catch a NameError.
    guards: usize,
    anything_goes: bool,
    /// Names in annotations are uses too.
    annotations: bool,
}

impl<'m> Walk<'m> {
    fn over(module: &'m Module, annotations: bool) -> Self {
        let mut walk = Walk {
            module,
            scopes: vec![Scope::new(ScopeKind::Module, None)],
            uses: Vec::new(),
            guards: 0,
            anything_goes: false,
            annotations,
        };
        walk.visit(module.root(), 0);
        walk
    }

    fn is_bound(&self, name: &str, scope: usize) -> bool {
        self.binder(name, scope).is_some()
    }

    /// The scope that binds a name as seen from another; 0 is the module's.
    fn binder(&self, name: &str, scope: usize) -> Option<usize> {
        let mut here = scope;
        let mut sees_class = true;
        loop {
            let current = self.scopes.get(here)?;
            if (current.kind != ScopeKind::Class || sees_class) && current.bound.contains(name) {
                return Some(here);
            }
            // A class's names are seen in its own body and in comprehensions there, not in its methods.
            sees_class = matches!(current.kind, ScopeKind::Comprehension) && sees_class;
            here = current.parent?;
        }
    }

    fn text(&self, node: Node<'m>) -> &'m str {
        self.module.source(node)
    }

    fn open(&mut self, kind: ScopeKind, parent: usize) -> usize {
        self.scopes.push(Scope::new(kind, Some(parent)));
        self.scopes.len() - 1
    }

    fn declare(&mut self, name: &'m str, scope: usize) {
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.bound.insert(name);
        }
    }

    fn children(&self, node: Node<'m>) -> Vec<Node<'m>> {
        let mut cursor = node.walk();
        node.named_children(&mut cursor).collect()
    }

    fn each(&mut self, node: Node<'m>, scope: usize) {
        for child in self.children(node) {
            self.visit(child, scope);
        }
    }

    fn field(&mut self, node: Node<'m>, field: &str, scope: usize) {
        let mut cursor = node.walk();
        let found: Vec<Node<'m>> = node.children_by_field_name(field, &mut cursor).collect();
        for child in found {
            self.visit(child, scope);
        }
    }

    fn visit(&mut self, node: Node<'m>, scope: usize) {
        match node.kind() {
            "identifier" => {
                self.uses.push(Use {
                    name: self.text(node),
                    scope,
                    line: node.start_position().row + 1,
                    at: node.start_byte(),
                    guarded: self.guards > 0,
                });
            }
            "type" if self.annotations => self.each(node, scope),
            "type" | "comment" | "ERROR" | "nonlocal_statement" => {}
            "function_definition" | "lambda" => self.function(node, scope),
            "class_definition" => {
                if let Some(name) = node.child_by_field_name("name") {
                    self.declare(self.text(name), scope);
                }
                let inner = self.open(ScopeKind::Class, scope);
                self.type_parameters(node, &[scope, inner]);
                self.field(node, "superclasses", scope);
                self.field(node, "body", inner);
            }
            "list_comprehension"
            | "set_comprehension"
            | "dictionary_comprehension"
            | "generator_expression" => {
                let inner = self.open(ScopeKind::Comprehension, scope);
                self.each(node, inner);
            }
            "assignment" | "for_in_clause" | "for_statement" | "augmented_assignment" => {
                let left = node.child_by_field_name("left");
                for child in self.children(node) {
                    match left {
                        Some(left) if left.id() == child.id() => self.bind(child, scope),
                        _ => self.visit(child, scope),
                    }
                }
            }
            "named_expression" => {
                let mut target = scope;
                while let Some(parent) = self
                    .scopes
                    .get(target)
                    .filter(|s| s.kind == ScopeKind::Comprehension)
                    .and_then(|s| s.parent)
                {
                    target = parent;
                }
                if let Some(name) = node.child_by_field_name("name") {
                    self.declare(self.text(name), target);
                }
                self.field(node, "value", scope);
            }
            "as_pattern" => {
                let alias = node.child_by_field_name("alias");
                for child in self.children(node) {
                    match alias {
                        Some(alias) if alias.id() == child.id() => self.bind(child, scope),
                        _ => self.visit(child, scope),
                    }
                }
            }
            "except_clause" | "except_group_clause" => {
                let alias = node.child_by_field_name("alias");
                for child in self.children(node) {
                    match alias {
                        Some(alias) if alias.id() == child.id() => self.bind(child, scope),
                        _ => self.visit(child, scope),
                    }
                }
            }
            "import_statement" | "import_from_statement" | "future_import_statement" => {
                self.import(node, scope)
            }
            "global_statement" => {
                for name in self.children(node) {
                    self.declare(self.text(name), 0);
                }
            }
            "keyword_argument" => self.field(node, "value", scope),
            "attribute" => self.field(node, "object", scope),
            "case_clause" => {
                for child in self.children(node) {
                    match child.kind() {
                        "case_pattern" => self.pattern(child, scope),
                        _ => self.visit(child, scope),
                    }
                }
            }
            "type_alias_statement" => {
                if let Some(name) = node.child_by_field_name("left").and_then(first_identifier) {
                    self.declare(self.text(name), scope);
                }
            }
            "exec_statement" => self.anything_goes = true,
            "call" => {
                let function = node.child_by_field_name("function").map(|f| self.text(f));
                if matches!(function, Some("exec" | "globals" | "execfile")) {
                    self.anything_goes = true;
                }
                self.each(node, scope);
            }
            "try_statement" => self.try_statement(node, scope),
            _ => self.each(node, scope),
        }
    }

    fn try_statement(&mut self, node: Node<'m>, scope: usize) {
        let children = self.children(node);
        let guards = children
            .iter()
            .filter(|c| c.kind().starts_with("except"))
            .any(|c| {
                let head = self.text(*c).lines().next().unwrap_or_default();
                head.contains("NameError")
                    || head.contains("Exception")
                    || head.trim_end() == "except:"
            });
        let body = node.child_by_field_name("body");
        for child in children {
            let guarded = guards && body.is_some_and(|b| b.id() == child.id());
            self.guards += usize::from(guarded);
            self.visit(child, scope);
            self.guards -= usize::from(guarded);
        }
    }

    fn function(&mut self, node: Node<'m>, scope: usize) {
        if let Some(name) = node.child_by_field_name("name") {
            self.declare(self.text(name), scope);
        }
        let inner = self.open(ScopeKind::Function, scope);
        self.type_parameters(node, &[scope, inner]);
        if self.annotations {
            self.field(node, "return_type", scope);
        }
        if let Some(parameters) = node.child_by_field_name("parameters") {
            for parameter in self.children(parameters) {
                self.parameter(parameter, scope, inner);
            }
        }
        self.field(node, "body", inner);
    }

    fn parameter(&mut self, node: Node<'m>, outer: usize, inner: usize) {
        match node.kind() {
            "default_parameter" | "typed_default_parameter" => {
                if let Some(name) = node.child_by_field_name("name") {
                    self.bind(name, inner);
                }
                if self.annotations {
                    self.field(node, "type", outer);
                }
                self.field(node, "value", outer);
            }
            "typed_parameter" => {
                for child in self.children(node) {
                    match child.kind() {
                        "type" => self.visit(child, outer),
                        _ => self.bind(child, inner),
                    }
                }
            }
            "keyword_separator" | "positional_separator" | "comment" => {}
            _ => self.bind(node, inner),
        }
    }

    fn type_parameters(&mut self, node: Node<'m>, scopes: &[usize]) {
        let Some(parameters) = node.child_by_field_name("type_parameters") else {
            return;
        };
        for parameter in self.children(parameters) {
            if let Some(name) = first_identifier(parameter) {
                for &scope in scopes {
                    self.declare(self.text(name), scope);
                }
            }
        }
    }

    /// The target of an assignment.
    fn bind(&mut self, node: Node<'m>, scope: usize) {
        match node.kind() {
            "identifier" => self.declare(self.text(node), scope),
            "attribute" | "subscript" | "call" => self.visit(node, scope),
            "comment" | "type" => {}
            _ if node.named_child_count() == 0 => {
                // `print`, `match` and the like, where they are names, have no node of their own inside.
                self.declare(self.text(node), scope);
            }
            _ => {
                for child in self.children(node) {
                    self.bind(child, scope);
                }
            }
        }
    }

    /// A pattern of `match`: plain names are bound, dotted ones and classes are used.
    fn pattern(&mut self, node: Node<'m>, scope: usize) {
        match node.kind() {
            "identifier" => self.declare(self.text(node), scope),
            "dotted_name" => {
                let parts = self.children(node);
                match parts.as_slice() {
                    [only] => self.declare(self.text(*only), scope),
                    [first, ..] => self.visit(*first, scope),
                    [] => {}
                }
            }
            "class_pattern" => {
                for child in self.children(node) {
                    match child.kind() {
                        "dotted_name" => {
                            if let Some(first) = child.named_child(0) {
                                self.visit(first, scope);
                            }
                        }
                        _ => self.pattern(child, scope),
                    }
                }
            }
            "keyword_pattern" => {
                for child in self.children(node).into_iter().skip(1) {
                    self.pattern(child, scope);
                }
            }
            "string" | "concatenated_string" => {}
            _ => {
                for child in self.children(node) {
                    self.pattern(child, scope);
                }
            }
        }
    }

    fn import(&mut self, node: Node<'m>, scope: usize) {
        let mut cursor = node.walk();
        let names: Vec<Node<'m>> = node.children_by_field_name("name", &mut cursor).collect();
        for name in names {
            let local = match name.kind() {
                "aliased_import" => name.child_by_field_name("alias"),
                _ => name.named_child(0).or(Some(name)),
            };
            if let Some(local) = local {
                self.declare(self.text(local), scope);
            }
        }
        if self
            .children(node)
            .iter()
            .any(|c| c.kind() == "wildcard_import")
        {
            self.anything_goes = true;
        }
    }
}

fn first_identifier(node: Node<'_>) -> Option<Node<'_>> {
    if node.kind() == "identifier" {
        return Some(node);
    }
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
    children.into_iter().find_map(first_identifier)
}

#[cfg(test)]
mod tests {
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
    fn finds_what_is_defined_nowhere() {
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
    fn outer_names_are_those_of_the_module() {
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
    fn no_alarm_for_what_is_bound() {
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
}
