//! Blocks of tests: functions in which every function is a test (pytest-describe).

use std::rc::Rc;

use tree_sitter::Node;

use super::{Test, TestFileReader, hash};
use crate::python::nodes::{definition_of, named_children};
use crate::python::tokens::tokens;

impl<'m> TestFileReader<'m, '_> {
    /// Adds the functions of a block of tests (pytest-describe). `path` has the names of the blocks. A test depends on
    /// everything in them except other tests.
    pub(super) fn block_of_tests(
        &mut self,
        path: Vec<String>,
        block: Node<'m>,
        tests: &mut Vec<Test>,
    ) {
        let Some(body) = definition_of(block).child_by_field_name("body") else {
            return;
        };
        let statements: Vec<Node<'m>> = named_children(body).collect();
        let is_collected = |statement: &Node<'m>| {
            let inner = definition_of(*statement);
            let name = self.name_of(inner).unwrap_or_default();
            inner.kind() == "function_definition"
                && !name.starts_with('_')
                && !self.referred.is_fixture(*statement)
        };
        let (collected, _): (Vec<_>, Vec<_>) = statements.into_iter().partition(is_collected);
        let is_test = |node: Node<'_>| collected.iter().any(|test| test.id() == node.id());
        let head = hash(&tokens(self.module, block, &is_test));
        let names = Rc::new(self.referred.names(block, None));
        self.insert("", &format!("class {}", path.join(".")), head, &names);
        let blocks: Vec<String> = (1..=path.len()).map(|end| path[..end].join(".")).collect();
        for statement in collected {
            let name = self.name_of(definition_of(statement)).unwrap_or_default();
            let inner = [&path[..], std::slice::from_ref(&name)].concat();
            if self.layout.is_block(&name) {
                self.block_of_tests(inner, statement, tests);
                continue;
            }
            let (unit, id) = (inner.join("."), inner.join("::"));
            let own = hash(&tokens(self.module, statement, &|_| false));
            let names = Rc::new(self.referred.names(statement, None));
            let added = self.insert("", &unit, own, &names);
            added.spans.push(statement.byte_range());
            tests.push(self.test(id, unit, statement, blocks.clone()));
        }
    }
}
