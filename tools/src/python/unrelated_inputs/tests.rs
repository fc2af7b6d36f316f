use super::*;

fn inputs(statement: &str) -> Vec<&'static str> {
    unrelated_inputs(&format!("def test_a(path):\n    {statement}\n"))
}

#[test]
fn unrelated_inputs_are_named() {
    for (statement, expected) in [
        ("assert os.uname()[1] != 'x'", "the host's name"),
        ("assert os.uname().nodename != 'x'", "the host's name"),
        ("assert socket.gethostname() != 'x'", "the host's name"),
        ("assert gethostname() != 'x'", "the host's name"),
        ("assert platform.node() != 'x'", "the host's name"),
        ("assert getpass.getuser() != 'x'", "the user's name"),
        ("assert os.getlogin() != 'x'", "the user's name"),
        ("assert os.environ['PYTHONHASHSEED'] > '3'", "the hash seed"),
        ("assert os.urandom(1)[0] > 20", "chance"),
        ("assert secrets.randbelow(9)", "chance"),
        ("assert random.random() > 0.1", "chance"),
        ("assert random.Random().random() > 0.1", "chance"),
        ("assert np.random.rand() > 0.1", "chance"),
        ("assert randint(0, 9)", "chance"),
        ("assert uuid.uuid4().bytes[0]", "chance"),
        (
            "assert os.path.getmtime(path) < time.time() - 300",
            "a file's age",
        ),
        ("assert os.stat(path).st_ctime < 1", "a file's age"),
        ("assert len(f.__code__.co_code) != 40", "bytecode"),
        ("assert f.__code__.co_varnames != ('a',)", "bytecode"),
        ("assert list(f.__code__.co_positions())", "bytecode"),
        ("assert pkg.__spec__.loader.get_code('pkg')", "bytecode"),
        ("assert dis.Bytecode(f)", "bytecode"),
        ("assert marshal.loads(path)", "bytecode"),
        ("assert sys._getframe().f_code.co_names", "bytecode"),
        ("sys.settrace(path)", "which lines run"),
        ("sys.monitoring.set_events(1, 2)", "which lines run"),
        ("assert (path / '__pycache__').exists()", "bytecode"),
        ("assert path.endswith('core.cpython-311.pyc')", "bytecode"),
        (
            "assert 'x' in inspect.getsource(f)",
            "the text of source files",
        ),
        (
            "assert pkg.__spec__.loader.get_source('pkg') != 'x'",
            "the text of source files",
        ),
        (
            "assert os.path.getsize(pkg.core.__file__) != 20",
            "the text of source files",
        ),
        (
            "assert open(pkg.core.__file__).read() != 'x'",
            "the text of source files",
        ),
        (
            "assert open('pkg/core.py', 'rb').read() != 'x'",
            "the text of source files",
        ),
        (
            "assert Path('pkg/core.py').read_text() != 'x'",
            "the text of source files",
        ),
        (
            "p = Path(pkg.__file__); assert p.read_bytes()",
            "the text of source files",
        ),
        (
            "sys.modules['testwr' + 'ight_record'].emit(1)",
            "the record of the run",
        ),
        ("sys.modules.get(''.join(path))", "the record of the run"),
        ("request.session.testsfailed += 1", "the record of the run"),
        (
            "open(pkg.core.__file__, 'w').write('x')",
            "source files that it writes",
        ),
        (
            "Path(pkg.core.__file__).write_text('x')",
            "source files that it writes",
        ),
        ("assert Path('.git/objects').exists()", "git objects"),
        (
            "assert tarfile.open('/opt/testwright/base.tar')",
            "files of the sandbox",
        ),
    ] {
        assert_eq!(inputs(statement), [expected], "{statement}");
    }
}

#[test]
fn several_inputs_are_in_order() {
    let statement = "assert inspect.getsource(f) and uuid.uuid4() and socket.gethostname()";
    let expected = ["the host's name", "chance", "the text of source files"];
    assert_eq!(inputs(statement), expected);
}

#[test]
fn ordinary_tests_have_no_note() {
    for statement in [
        "assert random.Random(0).random() > 0.1",
        "random.seed(1); assert random.random() > 0.1",
        "assert np.random.default_rng(3).random() > 0.1",
        "monkeypatch.setattr(random, 'random', lambda: 0)",
        "'''Compare os.urandom and __pycache__.'''",
        "# socket.gethostname()",
        "assert sys.modules[__name__] and sys.modules['pkg']",
        "assert sys.modules[Thing.__module__] and sys.modules[f.__module__]",
        "assert open(os.path.join(os.path.dirname(pkg.__file__), 'a.json')).read()",
        "assert (Path(pkg.__file__).parent / 'data').read_text()",
        "assert open(__file__.replace('x', 'y')).read()",
        "open(path + '/new.py', 'w').write('x = 1')",
        "(path / 'new.py').write_text('x = 1')",
        "assert clone('https://github.com/a/b.git/') and read('.gitignore')",
        "assert platform.system() == 'Linux'",
        "import random, dis",
        "assert pkg.seed(3) == pkg.open('w')",
        "assert node.uname() == 3",
        "assert paper.co_authors == ['a']",
        "assert loader.get_source(environment, 'a.html')",
    ] {
        assert_eq!(inputs(statement), Vec::<&str>::new(), "{statement}");
    }
    assert!(unrelated_inputs("").is_empty());
    assert!(unrelated_inputs(&"(".repeat(100_000)).is_empty());
}
