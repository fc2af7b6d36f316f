//! Finds what a test reads although no behaviour depends on it: the host's name, chance, a file's age, the text of the
//! code. Such a test may fail on the old code for a reason that has nothing to do with the issue.
//!
//! Names are not resolved, so this is a hint for a reader and no proof. A test that hides what it reads is not found.

use std::collections::BTreeSet;

use tree_sitter::Node;

use super::Module;
use super::nodes::descendants;

/// Something that no behaviour depends on, in the order in which it is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Input {
    HostName,
    UserName,
    HashSeed,
    Chance,
    FileAge,
    Bytecode,
    TracedLines,
    SourceText,
    RunRecord,
    GitObjects,
    SandboxFiles,
    WrittenSource,
}

impl Input {
    fn phrase(self) -> &'static str {
        match self {
            Input::HostName => "the host's name",
            Input::UserName => "the user's name",
            Input::HashSeed => "the hash seed",
            Input::Chance => "chance",
            Input::FileAge => "a file's age",
            Input::Bytecode => "bytecode",
            Input::TracedLines => "which lines run",
            Input::SourceText => "the text of source files",
            Input::RunRecord => "the record of the run",
            Input::GitObjects => "git objects",
            Input::SandboxFiles => "files of the sandbox",
            Input::WrittenSource => "source files that it writes",
        }
    }
}

/// Returns phrases for the things that the source of a test reads and that no behaviour depends on.
pub fn unrelated_inputs(test_source: &str) -> Vec<&'static str> {
    let module = Module::parse(test_source);
    let mut reader = InputReader {
        module: &module,
        inputs: BTreeSet::new(),
        draws: false,
        seeds: false,
        names_module_file: false,
        reads_file: false,
        writes_file: false,
        names_folder: false,
    };
    for node in descendants(module.root(), may_hold_code) {
        reader.visit(node);
    }
    reader.finish().into_iter().map(Input::phrase).collect()
}

/// Returns whether the children of a node may contain code: not those of imports and docstrings.
fn may_hold_code(node: Node<'_>) -> bool {
    match node.kind() {
        "import_statement" | "import_from_statement" | "comment" => false,
        "expression_statement" => node.named_child(0).is_none_or(|c| c.kind() != "string"),
        _ => true,
    }
}

/// Attributes of functions and code objects that lead to bytecode.
const CODE_ATTRIBUTES: [&str; 16] = [
    "__code__",
    "co_cellvars",
    "co_code",
    "co_consts",
    "co_exceptiontable",
    "co_firstlineno",
    "co_flags",
    "co_freevars",
    "co_lines",
    "co_linetable",
    "co_lnotab",
    "co_names",
    "co_nlocals",
    "co_positions",
    "co_stacksize",
    "co_varnames",
];

struct InputReader<'m> {
    module: &'m Module,
    inputs: BTreeSet<Input>,
    /// Whether the source draws random numbers, and whether it seeds them.
    draws: bool,
    seeds: bool,
    /// Whether the source names the file of a module (`module.__file__`), and reads a file.
    names_module_file: bool,
    reads_file: bool,
    /// Whether it writes to a file.
    writes_file: bool,
    /// Whether it names the folder of a file, which holds data as well.
    names_folder: bool,
}

impl InputReader<'_> {
    fn add(&mut self, input: Input) {
        self.inputs.insert(input);
    }

    fn add_if(&mut self, is_read: bool, input: Input) {
        self.inputs.extend(is_read.then_some(input));
    }

    fn visit(&mut self, node: Node<'_>) {
        match node.kind() {
            "call" => self.visit_call(node),
            "attribute" => {
                if let Some(name) = node.child_by_field_name("attribute") {
                    self.visit_attribute(self.module.source(name));
                }
            }
            "subscript" => self.visit_subscript(node),
            "string_content" => self.visit_string(self.module.source(node)),
            _ => {}
        }
    }

    fn visit_attribute(&mut self, name: &str) {
        let input = match name {
            "nodename" => Input::HostName,
            "hash_randomization" => Input::HashSeed,
            "st_mtime" | "st_mtime_ns" | "st_ctime" | "st_ctime_ns" => Input::FileAge,
            _ if CODE_ATTRIBUTES.contains(&name) => Input::Bytecode,
            "testsfailed" => Input::RunRecord,
            _ => {
                self.names_module_file |= name == "__file__";
                self.names_folder |= matches!(name, "parent" | "parents");
                return;
            }
        };
        self.add(input);
    }

    fn visit_call(&mut self, call: Node<'_>) {
        let (Some(function), Some(arguments)) = (
            call.child_by_field_name("function"),
            call.child_by_field_name("arguments"),
        ) else {
            return;
        };
        let name: String = (self.module.source(function).chars())
            .filter(|letter| !letter.is_whitespace())
            .collect();
        let parts: Vec<&str> = name.split('.').collect();
        let [around @ .., last] = parts.as_slice() else {
            return;
        };
        let has_arguments = arguments.named_child_count() > 0;
        let owner = around.last().copied().unwrap_or_default();
        match (owner, *last) {
            (_, "gethostname" | "getfqdn") | ("os", "uname") | ("platform", "node") => {
                self.add(Input::HostName)
            }
            (_, "getuser" | "getlogin") => self.add(Input::UserName),
            (_, "seed" | "set_seed" | "manual_seed") => self.seeds = true,
            (_, "urandom" | "uuid1" | "uuid4") | ("secrets", _) => self.add(Input::Chance),
            // A generator without a seed.
            ("random", "Random" | "RandomState" | "default_rng") if has_arguments => {}
            ("random", "setstate" | "getstate" | "set_state" | "get_state") => self.seeds = true,
            ("random", _) | ("", "randint" | "randrange") => self.draws = true,
            (_, "getmtime" | "getctime") => self.add(Input::FileAge),
            ("marshal" | "dis", _)
            | (_, "cache_from_source")
            | ("loader" | "__loader__", "get_code") => self.add(Input::Bytecode),
            ("inspect" | "", "findsource" | "getsource" | "getsourcelines") | ("linecache", _) => {
                self.add(Input::SourceText)
            }
            // Loaders of templates take an environment as well.
            ("loader" | "__loader__", "get_source") if arguments.named_child_count() == 1 => {
                self.add(Input::SourceText)
            }
            ("sys" | "threading" | "", "settrace" | "setprofile")
            | ("monitoring", "register_callback" | "set_events") => self.add(Input::TracedLines),
            (_, "getsourcefile") => self.names_module_file = true,
            (_, "dirname") => self.names_folder = true,
            (_, "open") => self.visit_read(call, !is_written(self.module.source(arguments))),
            (_, "getsize" | "read_text" | "read_bytes") => self.visit_read(call, true),
            (_, "write_text" | "write_bytes") => self.visit_read(call, false),
            ("modules", "get") if name == "sys.modules.get" => {
                if let Some(key) = arguments.named_child(0) {
                    self.visit_module_key(key);
                }
            }
            _ => {}
        }
    }

    /// Handles a call that reads or writes a file. It reads source code if the path is that of a Python file.
    fn visit_read(&mut self, call: Node<'_>, is_read: bool) {
        if !is_read {
            self.writes_file = true;
            return;
        }
        self.reads_file = true;
        let source = self.module.source(call);
        let is_python = source.contains(".py\"") || source.contains(".py'");
        self.add_if(is_python, Input::SourceText);
    }

    fn visit_subscript(&mut self, subscript: Node<'_>) {
        let value = subscript.child_by_field_name("value");
        let key = subscript.child_by_field_name("subscript");
        if let (Some(value), Some(key)) = (value, key)
            && self.module.source(value) == "sys.modules"
        {
            self.visit_module_key(key);
        }
    }

    /// Handles the name of a loaded module. A computed name may be that of the recording module.
    fn visit_module_key(&mut self, key: Node<'_>) {
        let source = self.module.source(key);
        let is_plain = match key.kind() {
            "string" => !source.starts_with(['f', 'F']),
            "attribute" => true,
            _ => source == "__name__",
        };
        self.add_if(!is_plain, Input::RunRecord);
    }

    fn visit_string(&mut self, text: &str) {
        let is_bytecode = text.contains("__pycache__") || text.ends_with(".pyc");
        let is_of_git = text.split('/').any(|part| part == ".git");
        let is_of_sandbox = text.contains("/opt/testwright") || text.ends_with("base.tar");
        self.add_if(text.contains("PYTHONHASHSEED"), Input::HashSeed);
        self.add_if(is_bytecode, Input::Bytecode);
        self.add_if(text.contains("testwright_"), Input::RunRecord);
        self.add_if(text == "/etc/hostname", Input::HostName);
        self.add_if(is_of_git, Input::GitObjects);
        self.add_if(is_of_sandbox, Input::SandboxFiles);
    }

    fn finish(mut self) -> BTreeSet<Input> {
        let uses_source = self.names_module_file && !self.names_folder;
        self.add_if(self.draws && !self.seeds, Input::Chance);
        self.add_if(uses_source && self.reads_file, Input::SourceText);
        self.add_if(uses_source && self.writes_file, Input::WrittenSource);
        self.inputs
    }
}

/// Returns whether the arguments of `open` have a mode that writes.
fn is_written(arguments: &str) -> bool {
    let modes = ["w", "wb", "a", "ab", "x", "xb", "wt", "at"];
    let mut quoted = arguments.split(['"', '\'']).skip(1).step_by(2);
    quoted.any(|text| modes.contains(&text))
}

#[cfg(test)]
mod tests;
