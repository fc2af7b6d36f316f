//! The tests of one file, and the code of the file that each of them depends on.

mod blocks;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;

use tree_sitter::Node;

use super::referred_names::{ReferredName, ReferredNames};
use crate::python::Module;
use crate::python::nodes::{definition_of, descendants, is_scope, named_children};
use crate::python::tokens::tokens;
use crate::workspace::Layout;

/// Members of a class, and functions of a module, that run without being named.
const IMPLICIT_NAMES: [&str; 18] = [
    "setUp",
    "tearDown",
    "setUpClass",
    "tearDownClass",
    "asyncSetUp",
    "asyncTearDown",
    "setUpTestData",
    "setup",
    "teardown",
    "setup_method",
    "teardown_method",
    "setup_class",
    "teardown_class",
    "setup_module",
    "teardown_module",
    "setup_function",
    "teardown_function",
    "pytestmark",
];

/// Maximum number of classes in a lookup order; every test stores their names.
const MAX_BASES: usize = 30;

pub(super) struct Test {
    /// `Class::function`, without the file.
    pub id: String,
    pub line: usize,
    pub source: String,
    /// Key of its function.
    pub unit: String,
    /// Paths of the test's class and of that class's bases in this file, in lookup order.
    pub classes: Vec<String>,
}

/// A named piece of code: a function, an assignment, an import, or the head of a class.
#[derive(Default)]
pub(super) struct Unit {
    pub hashes: Vec<u64>,
    /// Names that it may refer to; shared by all names that one statement binds.
    pub names: Vec<Rc<BTreeSet<ReferredName>>>,
    runs_unnamed: bool,
    /// Byte ranges of the definitions; empty for the head of a class.
    pub spans: Vec<Range<usize>>,
}

struct Class<'m> {
    /// Dotted path.
    path: String,
    name: String,
    bases: Vec<String>,
    /// Name and whole node of each method.
    functions: Vec<(String, Node<'m>)>,
    members: BTreeSet<String>,
}

pub(super) struct TestFile {
    /// Keys are `name` at module level, `Class.name` for members, and `class Class` for heads.
    pub units: HashMap<String, Unit>,
    /// Keys of code that runs without being named, by class (empty for the module).
    pub unnamed: HashMap<String, Vec<String>>,
    pub tests: Vec<Test>,
}

impl TestFile {
    pub(super) fn read(module: &Module, layout: &Layout) -> TestFile {
        let mut reader = TestFileReader {
            module,
            layout,
            referred: ReferredNames::from_module(module, layout),
            units: HashMap::new(),
            classes: Vec::new(),
            by_path: HashMap::new(),
            functions: Vec::new(),
        };
        reader.block(module.root(), "");
        let mut tests = Vec::new();
        for (name, node) in &reader.functions {
            if layout.is_test_function(name) && !reader.referred.is_fixture(*node) {
                tests.push(reader.test(name.clone(), name.clone(), *node, Vec::new()));
            }
        }
        for class in &reader.classes {
            let order = reader.lookup_order(class);
            if !reader.is_collected(class, &order, layout) {
                continue;
            }
            let mut seen = BTreeSet::new();
            for path in &order {
                let Some(owner) = reader.class(path) else {
                    continue;
                };
                for (name, node) in &owner.functions {
                    let is_test = layout.is_test_function(name) || name.starts_with("test");
                    if is_test && seen.insert(name.clone()) && !reader.referred.is_fixture(*node) {
                        let id = format!("{}::{name}", class.path.replace('.', "::"));
                        tests.push(reader.test(id, format!("{path}.{name}"), *node, order.clone()));
                    }
                }
            }
        }
        for (name, node) in reader.functions.clone() {
            if layout.is_block(&name) {
                reader.block_of_tests(vec![name], node, &mut tests);
            }
        }
        // A name that is defined twice counts once: the last definition is the one that runs.
        let mut seen = HashSet::new();
        tests.reverse();
        tests.retain(|test| seen.insert(test.id.clone()));
        tests.reverse();
        tests.sort_by_key(|t| t.line);
        let mut unnamed: HashMap<String, Vec<String>> = HashMap::new();
        for (key, _) in reader.units.iter().filter(|(_, unit)| unit.runs_unnamed) {
            let owner = key.rsplit_once('.').map_or("", |(owner, _)| owner);
            let keys = unnamed.entry(owner.to_owned()).or_default();
            keys.push(key.clone());
        }
        retain_defined_names(&mut reader.units);
        TestFile {
            units: reader.units,
            unnamed,
            tests,
        }
    }
}

struct TestFileReader<'m, 'l> {
    module: &'m Module,
    layout: &'l Layout,
    referred: ReferredNames<'m>,
    units: HashMap<String, Unit>,
    classes: Vec<Class<'m>>,
    /// Index of each class by path; the last one, if a path occurs twice.
    by_path: HashMap<String, usize>,
    functions: Vec<(String, Node<'m>)>,
}

impl<'m> TestFileReader<'m, '_> {
    /// Reads the statements of a module (if `owner` is empty) or of a class.
    fn block(&mut self, block: Node<'m>, owner: &str) {
        for statement in named_children(block) {
            let inner = definition_of(statement);
            match inner.kind() {
                "function_definition" => {
                    let Some(name) = self.name_of(inner) else {
                        continue;
                    };
                    self.add(owner, [name.as_str()], statement);
                    match self.by_path.get(owner) {
                        Some(at) => self.classes[*at].functions.push((name, statement)),
                        None => self.functions.push((name, statement)),
                    }
                }
                "class_definition" => self.class_definition(statement, inner, owner),
                "import_statement" | "import_from_statement" => {
                    for binding in self.module.bindings(inner) {
                        let text = format!("{} {} {}", binding.module, binding.name, binding.local);
                        let unit =
                            self.insert(owner, &binding.local, hash(&[text]), &Rc::default());
                        unit.spans.push(inner.byte_range());
                    }
                }
                "if_statement" | "try_statement" | "else_clause" | "elif_clause"
                | "except_clause" | "finally_clause" => {
                    for part in named_children(inner) {
                        if part.kind() == "block" {
                            self.block(part, owner);
                        } else if part.kind().ends_with("_clause") {
                            for block in named_children(part).filter(|b| b.kind() == "block") {
                                self.block(block, owner);
                            }
                        }
                    }
                }
                _ => {
                    let names = self.targets(inner);
                    self.add(owner, names.iter().map(String::as_str), inner);
                }
            }
        }
    }

    fn class_definition(&mut self, whole: Node<'m>, inner: Node<'m>, owner: &str) {
        let (Some(name), Some(body)) = (self.name_of(inner), inner.child_by_field_name("body"))
        else {
            return;
        };
        let path = key(owner, &name);
        // Code that names the class depends on the whole class.
        self.add(owner, [name.as_str()], whole);
        let head = tokens(self.module, whole, &|n| n.id() == body.id());
        let mut names = self.referred.names(whole, Some(body));
        let bases = self.bases(inner);
        names.retain(|n| !bases.contains(&n.name));
        self.insert("", &format!("class {path}"), hash(&head), &Rc::new(names));
        self.by_path.insert(path.clone(), self.classes.len());
        self.classes.push(Class {
            path: path.clone(),
            name,
            bases,
            functions: Vec::new(),
            members: BTreeSet::new(),
        });
        self.block(body, &path);
    }

    /// Adds a statement that binds these names.
    fn add<'n>(&mut self, owner: &str, bound: impl IntoIterator<Item = &'n str>, node: Node<'m>) {
        let mut bound = bound.into_iter().peekable();
        if bound.peek().is_none() {
            return;
        }
        let names = Rc::new(self.referred.names(node, None));
        let hash = hash(&tokens(self.module, node, &|_| false));
        let is_autouse = named_children(node)
            .any(|c| c.kind() == "decorator" && self.module.source(c).contains("autouse"));
        for name in bound {
            let unit = self.insert(owner, name, hash, &names);
            unit.runs_unnamed |= is_autouse || IMPLICIT_NAMES.contains(&name);
            unit.spans.push(node.byte_range());
        }
    }

    fn insert(
        &mut self,
        owner: &str,
        name: &str,
        hash: u64,
        names: &Rc<BTreeSet<ReferredName>>,
    ) -> &mut Unit {
        if let Some(at) = self.by_path.get(owner) {
            self.classes[*at].members.insert(name.to_owned());
        }
        let unit = self.units.entry(key(owner, name)).or_default();
        unit.hashes.push(hash);
        unit.names.push(names.clone());
        unit
    }

    fn name_of(&self, node: Node<'m>) -> Option<String> {
        let name = node.child_by_field_name("name")?;
        Some(self.module.source(name).to_owned())
    }

    /// Collects the names in the target of an assignment, with class members under their own names.
    fn identifiers(&self, node: Node<'m>, out: &mut BTreeSet<String>) {
        match node.kind() {
            "identifier" => {
                out.insert(self.module.source(node).to_owned());
            }
            "attribute" => {
                if let Some(object) = node.child_by_field_name("object") {
                    self.identifiers(object, out);
                }
            }
            _ => {
                for child in named_children(node) {
                    self.identifiers(child, out);
                }
            }
        }
    }

    /// Returns the names that a statement binds.
    fn targets(&self, statement: Node<'m>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for node in descendants(statement, |node| !is_scope(node)) {
            let bound = match node.kind() {
                "assignment" | "augmented_assignment" | "for_statement" => {
                    node.child_by_field_name("left")
                }
                "as_pattern_target" => Some(node),
                _ => None,
            };
            if let Some(target) = bound {
                self.identifiers(target, &mut names);
            }
        }
        // A call such as `parser.add(x)` at module level may change the object that it names.
        if let Some(call) = statement.named_child(0).filter(|c| c.kind() == "call")
            && let Some(function) = call
                .child_by_field_name("function")
                .filter(|f| f.kind() == "attribute")
            && let Some(object) = function
                .child_by_field_name("object")
                .filter(|o| o.kind() == "identifier")
        {
            names.insert(self.module.source(object).to_owned());
        }
        names
    }

    fn bases(&self, class: Node<'m>) -> Vec<String> {
        let Some(list) = class.child_by_field_name("superclasses") else {
            return Vec::new();
        };
        named_children(list)
            .filter(|c| matches!(c.kind(), "identifier" | "attribute"))
            .map(|c| self.module.source(c).to_owned())
            .collect()
    }

    fn class(&self, path: &str) -> Option<&Class<'m>> {
        self.classes.get(*self.by_path.get(path)?)
    }

    /// Returns the class and its bases in this file.
    fn lookup_order(&self, class: &Class<'m>) -> Vec<String> {
        let mut order = vec![class.path.clone()];
        let mut at = 0;
        while let Some(path) = order.get(at).cloned() {
            at += 1;
            let outer = path.rsplit_once('.').map(|(outer, _)| outer.to_owned());
            for base in self.class(&path).into_iter().flat_map(|c| &c.bases) {
                let sibling = outer.as_ref().map(|o| format!("{o}.{base}"));
                let resolved_base = sibling
                    .filter(|s| self.class(s).is_some())
                    .unwrap_or_else(|| base.clone());
                if order.len() < MAX_BASES
                    && self.class(&resolved_base).is_some()
                    && !order.contains(&resolved_base)
                {
                    order.push(resolved_base);
                }
            }
        }
        order
    }

    fn is_collected(&self, class: &Class<'m>, order: &[String], layout: &Layout) -> bool {
        let chain = || order.iter().filter_map(|path| self.class(path));
        if class.members.contains("__test__") && self.has_test_false(class) {
            return false;
        }
        let is_unittest = chain().flat_map(|c| &c.bases).any(|base| {
            let last = base.rsplit('.').next().unwrap_or(base);
            self.class(base).is_none() && (last.contains("TestCase") || last.contains("Test"))
        });
        let mut around = class.path.rsplit_once('.').map(|(outer, _)| outer);
        while let Some(path) = around {
            let class = self.class(path);
            if !class.is_some_and(|c| layout.is_test_class(&c.name)) {
                return false;
            }
            around = path.rsplit_once('.').map(|(outer, _)| outer);
        }
        is_unittest
            || (layout.is_test_class(&class.name)
                && !chain().any(|c| c.members.contains("__init__")))
    }

    fn has_test_false(&self, class: &Class<'m>) -> bool {
        let no = hash(&["__test__".to_owned(), "=".to_owned(), "False".to_owned()]);
        self.units
            .get(&format!("{}.__test__", class.path))
            .is_some_and(|u| u.hashes.last() == Some(&no))
    }

    fn test(&self, id: String, unit: String, node: Node<'m>, classes: Vec<String>) -> Test {
        Test {
            id,
            line: node.start_position().row + 1,
            source: dedent(self.module.source(node), node.start_position().column),
            unit,
            classes,
        }
    }
}

/// Removes names that the file does not define.
fn retain_defined_names(units: &mut HashMap<String, Unit>) {
    let last = |key: &String| key.rsplit('.').next().unwrap_or_default().to_owned();
    let defined_names: HashSet<String> = units.keys().map(last).collect();
    // Shared sets stay shared. The old sets are kept alive, so that their addresses remain unique.
    let mut replacements: HashMap<_, (_, Rc<BTreeSet<ReferredName>>)> = HashMap::new();
    for names in units.values_mut().flat_map(|unit| &mut unit.names) {
        let old = names.clone();
        let (_, new) = replacements.entry(Rc::as_ptr(names)).or_insert_with(|| {
            let new = old.iter().filter(|name| defined_names.contains(&name.name));
            (old.clone(), Rc::new(new.cloned().collect()))
        });
        *names = new.clone();
    }
}

fn key(owner: &str, name: &str) -> String {
    match owner {
        "" => name.to_owned(),
        _ => format!("{owner}.{name}"),
    }
}

fn hash(tokens: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tokens.hash(&mut hasher);
    hasher.finish()
}

/// Removes `columns` of indentation from every line except the first, which has none.
fn dedent(source: &str, columns: usize) -> String {
    let mut out = String::new();
    for (at, line) in source.split_inclusive('\n').enumerate() {
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        out.push_str(if at == 0 {
            line
        } else {
            &line[blank.min(columns)..]
        });
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
