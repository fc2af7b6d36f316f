//! Statements that a test keeps from the code of an issue.

use super::{candidates_for, candidates_with, lines};

#[test]
fn environment_variables_are_set_for_test() {
    let (_, all) = candidates_for(
        "t\n```\n>>> import os\n>>> os.environ['PORT'] = '8080'\n>>> from shop import port\n>>> port()\nTraceback (most recent call last):\nTypeError: can only concatenate str (not \"int\") to str\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        [
            "import os",
            "from shop import port",
            "os.environ['PORT'] = '8080'",
            "port()"
        ]
    );
    let [change] = all[0].body.changes.as_slice() else {
        panic!("{all:?}")
    };
    assert_eq!(change.lines, 0..1);
    assert_eq!(change.patched, ["monkeypatch.setenv('PORT', '8080')"]);
    assert_eq!(change.leaks, ["environ"]);
}

#[test]
fn statements_with_effects_are_kept() {
    let statements = [
        "random.seed(3)",
        "os.chdir('/')",
        "os.environ.update(A='1')",
        "os.environ.pop('PATH')",
        "sys.path.insert(0, 'lib')",
        "warnings.simplefilter('ignore')",
        "locale.setlocale(locale.LC_ALL, 'C')",
        "decimal.getcontext().prec = 5",
        "shop.LIMIT = 5",
        "shop.REGISTRY['a'] = 5",
        "shop.register('a')",
        "del sys.argv[:]",
        "with open(os.devnull) as file: file.read()",
        "for name in 'ab': shop.register(name)",
    ];
    let (_, all) = candidates_for(&format!(
        "t\n```python\nimport decimal, locale, os, random, sys, warnings\nimport shop\nunused = 3\n{}\nprint(unused)\nshop.open_box(3)\n```\n```\nTraceback (most recent call last):\nshop.Stuck: cannot turn 3\n```\n",
        statements.join("\n")
    ));
    assert_eq!(
        all[0].body.lines,
        [&statements[..], &["shop.open_box(3)"]].concat()
    );
}

#[test]
fn shown_values_are_kept_only_if_needed() {
    let session =
        |lines: &str| candidates_for(&format!("t\n```\n{lines}\n```\nThis is wrong.\n")).1;
    let all = session(">>> import shop\n>>> shop.label('a')\n'<a'\n>>> shop.low(5)\n3");
    assert_eq!(lines(&all[0]), ["import shop", "assert shop.low(5) != 3"]);
    let all = session(
        ">>> import shop\n>>> numbers = iter([5, 6])\n>>> next(numbers)\n5\n>>> shop.low(next(numbers))\n4",
    );
    assert_eq!(
        lines(&all[0]),
        [
            "import shop",
            "numbers = iter([5, 6])",
            "next(numbers)",
            "assert shop.low(next(numbers)) != 4"
        ]
    );
}

#[test]
fn module_loaded_after_effect_stays_in_place() {
    let (_, all) = candidates_for(
        "t\n```python\nimport os\nos.environ['PORT'] = '8080'\nfrom shop.late import start\nstart()\n```\n```\nTraceback (most recent call last):\nTypeError: can only concatenate\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        [
            "import os",
            "os.environ['PORT'] = '8080'",
            "from shop.late import start",
            "start()"
        ]
    );
}

#[test]
fn long_strings_keep_their_white_space() {
    let fails = |code: &str| {
        let (_, all) = candidates_for(&format!(
            "t\n```\n>>> import shop\n{code}\nTraceback (most recent call last):\nshop.Stuck: cannot turn 3\n```\n"
        ));
        all[0].body.lines.clone()
    };
    let lines = fails(">>> shop.open_box(len(\"\"\"http://a, \n...  b\"\"\"))");
    assert_eq!(
        lines[1..],
        ["    shop.open_box(len(\"\"\"http://a, ", " b\"\"\"))"]
    );
}

#[test]
fn django_is_set_up_before_the_code() {
    let files = [
        (
            "pytest.ini",
            "[pytest]\nDJANGO_SETTINGS_MODULE = shop.late\n",
        ),
        (
            "django.py",
            "import os\n\ndef setup():\n    os.environ['APPS'] = os.environ['DJANGO_SETTINGS_MODULE']\n",
        ),
        (
            "shop/models.py",
            "import os\nAPPS = os.environ['APPS']\n\ndef label(name):\n    return 'poll ' + name.lower()\n",
        ),
    ];
    let set_up = "import os\nimport django\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'a')\ndjango.setup()\n";
    for set_up in ["", set_up] {
        let issue = format!(
            "t\n```python\n{set_up}from shop.models import label\nlabel('ABC')\n```\n\nI expected `'poll ABC'` but got `'poll abc'`.\n"
        );
        let (_, all) = candidates_with(&files, &issue);
        assert_eq!(
            lines(&all[0]),
            [
                "from shop.models import label",
                "assert label('ABC') == 'poll ABC'"
            ]
        );
    }
}
