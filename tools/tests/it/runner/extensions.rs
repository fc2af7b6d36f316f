//! Code of the repository in extension modules.

use std::process::Command;

use testwright_tools::outcomes::report::{FailureClass, Outcome};

use crate::project::{Project, run, test};

const SOURCE: &str = r#"
#include <Python.h>
static PyObject *half(PyObject *self, PyObject *number) {
    long value = PyLong_AsLong(number);
    if (value < 0) { PyErr_SetString(PyExc_ValueError, "negative"); return NULL; }
    return PyLong_FromLong(value / 2);
}
static PyMethodDef methods[] = {{"half", half, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_c", 0, -1, methods};
PyMODINIT_FUNC PyInit__c(void) { return PyModule_Create(&module); }
"#;

const TESTS: &str = "
import mod

def test_value(): assert mod.half(5) == 3
def test_error(): mod.half(-1)
def test_raise():
    raise ValueError(mod.half)
def test_other(): assert 1 == 2
";

/// Compiles the module `mod._c` into the project.
fn compile(project: &Project) -> bool {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler here");
        return false;
    }
    let script =
        "import sysconfig as s; print(s.get_paths()['include'], s.get_config_var('EXT_SUFFIX'))";
    let output = Command::new(&project.config.python)
        .args(["-c", script])
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let (include, suffix) = output.trim().split_once(' ').unwrap();
    let folder = project.root().join("mod");
    run(Command::new("cc")
        .args(["-shared", "-fPIC", "-I", include, "-o"])
        .args([folder.join(format!("_c{suffix}")), folder.join("_c.c")]));
    true
}

#[test]
fn extension_modules_count_as_code() {
    let project = Project::new(&[
        ("mod/__init__.py", "from mod._c import half\n"),
        ("mod/_c.c", SOURCE),
        ("tests/test_a.py", TESTS),
    ]);
    if !compile(&project) {
        return;
    }
    let report = project.run_with(&["tests/test_a.py"], |run| {
        run.trace = vec!["tests".to_owned()]
    });
    let result = |name: &str| test(&report, &format!("tests/test_a.py::{name}")).clone();
    for (name, class, runs_code) in [
        ("test_value", FailureClass::Assertion, true),
        ("test_error", FailureClass::Exception, true),
        ("test_raise", FailureClass::Error, false),
        ("test_other", FailureClass::Assertion, false),
    ] {
        let result = result(name);
        assert_eq!(result.outcome, Outcome::Failed, "{name}");
        assert_eq!(result.failure.unwrap().class, class, "{name}");
        if name != "test_raise" {
            assert_eq!(
                !result.executed.is_empty(),
                runs_code,
                "{name}: {:?}",
                result.executed
            );
        }
    }
}
