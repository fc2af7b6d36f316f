#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::syntax::is_definition;
use super::*;

pub(super) const SEEDS: std::ops::Range<u64> = 0..400;

/// Replaces all numbers of four digits by [`NUMBER`].
pub(super) fn without_numbers(text: &str) -> String {
    let mut plain = String::new();
    let mut digits = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let is_number = digits.len() == NUMBER.len();
        plain.push_str(if is_number { NUMBER } else { &digits });
        digits.clear();
        plain.push(c);
    }
    plain.trim_end_matches('\0').to_owned()
}

/// Returns a changed text without the inserted comments and definitions, and with [`NUMBER`] for every random number.
fn without_comments(changed: &str) -> String {
    let mut text = without_numbers(changed);
    for comment in COMMENTS {
        text = text.replace(&format!("  {comment}"), "");
    }
    let definitions = DEFINITIONS.concat();
    let is_appended = |line: &str| COMMENTS.contains(&line) || definitions.contains(&line);
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !is_appended(line.trim_end())).collect()
}

/// Returns the distinct results of many seeds, without the inserted comments and a first empty line.
fn variants(source: &str, lines: LineNumbers) -> BTreeSet<String> {
    SEEDS
        .filter_map(|seed| placebo(source, None, seed, lines))
        .map(|changed| {
            without_comments(&changed)
                .trim_start_matches('\n')
                .to_owned()
        })
        .collect()
}

fn only(source: &str) -> BTreeSet<String> {
    BTreeSet::from([source.to_owned()])
}

#[test]
fn comments_end_simple_statements() {
    let source =
        "x = 1\ny = f(\n    2,\n)\nz = '''\n# text\n'''\na = b \\\n    + 1\nc = 1  # own\nd = 1;\n";
    let mut commented = BTreeSet::new();
    for seed in SEEDS {
        let changed = placebo(source, None, seed, LineNumbers::Kept).unwrap();
        assert_eq!(without_comments(&changed), source);
        let last = changed.lines().last().unwrap();
        assert!(COMMENTS.contains(&last), "{changed}");
        let added = changed.lines().zip(source.lines()).enumerate();
        commented.extend(
            added
                .filter(|(_, (new, old))| new != old)
                .map(|(at, _)| at + 1),
        );
    }
    assert_eq!(commented, BTreeSet::from([1, 4, 7, 9]));
}

#[test]
fn final_comment_keeps_line_end() {
    let changed = placebo("x = 1\r\ny = 2\r\n", None, 1, LineNumbers::Moved).unwrap();
    assert_eq!(
        changed.matches('\n').count(),
        changed.matches("\r\n").count()
    );
    assert!(changed.ends_with("\r\n"));
    let changed = placebo("x = 1\ny = 2", None, 1, LineNumbers::Kept).unwrap();
    assert_eq!(changed.lines().count(), 6);
    assert!(!changed.ends_with('\n'));
}

#[test]
fn functions_get_an_expression() {
    let mut expected = BTreeSet::new();
    for first in EXPRESSIONS {
        for second in EXPRESSIONS {
            expected.insert(format!(
                "def f():\n    'Doc.'\n    global x\n    {first}; x = 1\n\ndef g(): {second}; return 1\n"
            ));
        }
    }
    let source = "def f():\n    'Doc.'\n    global x\n    x = 1\n\ndef g(): return 1\n";
    assert_eq!(variants(source, LineNumbers::Kept), expected);
}

#[test]
fn expressions_have_own_line_if_lines_move() {
    let source = "def f():\n    global x\n    x = 1\n\ndef g(): return 1\n";
    for changed in variants(source, LineNumbers::Moved) {
        let lines: Vec<&str> = changed.lines().collect();
        let at = lines.iter().position(|line| *line == "    x = 1").unwrap();
        let expression = lines[at - 3].strip_prefix("    if [] and (").unwrap();
        let expression = expression.strip_suffix("):").unwrap();
        assert!(EXPRESSIONS.contains(&expression), "{changed}");
        assert_eq!(lines[at - 2], "     try: spare_1000 = 1000");
        assert_eq!(lines[at - 1], "     finally: pass");
        let last = lines.last().unwrap().strip_prefix("def g(): ").unwrap();
        let (expression, _) = last.split_once("; return ").unwrap();
        assert!(EXPRESSIONS.contains(&expression), "{changed}");
    }
}

#[test]
fn modules_get_unused_definitions() {
    for (seed, lines) in SEEDS.zip([LineNumbers::Kept, LineNumbers::Moved].repeat(200)) {
        let changed = placebo("x = 1", None, seed, lines).unwrap();
        let changed = changed.trim_start();
        let lines: Vec<String> = changed.lines().map(without_numbers).collect();
        assert_eq!(lines[0].split(' ').next(), Some("x"));
        for (kinds, line) in DEFINITIONS.iter().zip(&lines[1..4]) {
            assert!(kinds.contains(&line.as_str()), "{changed}");
        }
        assert!(COMMENTS.contains(&lines[4].as_str()), "{changed}");
        assert!(!changed.contains(NUMBER));
    }
}

#[test]
fn inner_blocks_take_the_expression() {
    let source = "class A:\n    x = 1\n    def f(self):\n        with self:\n            pass\n";
    let expected = EXPRESSIONS.map(|expression| {
        format!("class A:\n    x = 1\n    def f(self):\n        with self:\n            {expression}; pass\n")
    });
    assert_eq!(
        variants(source, LineNumbers::Kept),
        BTreeSet::from(expected)
    );
}

#[test]
fn compiled_and_unchecked_functions_stay() {
    for source in [
        "@numba.njit\ndef f(a):\n    total = a\n    return total\n",
        "@torch.jit.script\nclass A:\n    def f(self):\n        return 1\n",
        "def f(a):\n    return a\n\n\ng = njit(f)\n",
        "def f():\n    '''Doc.'''\n",
    ] {
        assert_eq!(variants(source, LineNumbers::Kept), only(source));
    }
    let source = "if TYPE_CHECKING:\n    import a\n    def f(a):\n        return a\n";
    assert_eq!(variants(source, LineNumbers::Moved), only(source));
}

#[test]
fn variables_are_renamed() {
    let mut expected = BTreeSet::new();
    for expression in EXPRESSIONS {
        for suffix in rename::SUFFIXES.into_iter().chain([""]) {
            expected.insert(format!(
                "def f(a):\n    {expression}; total{suffix} = a.total\n    return g(total=total{suffix})\n"
            ));
        }
    }
    let source = "def f(a):\n    total = a.total\n    return g(total=total)\n";
    assert_eq!(variants(source, LineNumbers::Kept), expected);
}

/// Returns whether any seed renames a variable.
fn is_renamed(source: &str) -> bool {
    let old: BTreeSet<&str> = rename::words(source).collect();
    variants(source, LineNumbers::Kept).iter().any(|changed| {
        rename::words(changed).any(|word| {
            !old.contains(word)
                && rename::SUFFIXES
                    .iter()
                    .any(|suffix| word.ends_with(*suffix))
        })
    })
}

#[test]
fn bound_variables_can_be_renamed() {
    for source in [
        "def f(a):\n    for item in a:\n        g(item)\n",
        "def f(a):\n    first, second = a\n    return f'{first!r:>{second}}'\n",
        "async def f(a):\n    if a:\n        total = await a\n        total += 1\n        yield total\n",
    ] {
        assert!(is_renamed(source), "{source}");
    }
}

#[test]
fn unsafe_variables_are_not_renamed() {
    for source in [
        "def f():\n    total = 1\n    return lambda: total\n",
        "def f():\n    total = 1\n    return [total for _ in '']\n",
        "def f():\n    total = 1\n    return locals()\n",
        "def f():\n    total = 1\n    return sys._getframe(0)\n",
        "def f():\n    total = 1\n    return f'{total=}'\n",
        "def f():\n    total = 1\n    return t'{total}'\n",
        "def f():\n    total = 1\n    return _('%(total)s')\n",
        "def f():\n    total = 1\n    del total\n",
        "def f():\n    import total\n    total = 1\n",
        "def f(total):\n    total = 1\n",
        "def f(a=total):\n    total = 1\n",
        "def f():\n    global total\n    total = 1\n",
        "def f():\n    self.total = 1\n",
        "def f():\n    _total = 1\n",
        "def f():\n    t = 1\n",
        "def f(a):\n    total = 1\n    try:\n        a()\n    except E as total:\n        pass\n",
        "def f(a):\n    if a:\n        total = 1\n    return total\n",
        "def f(a):\n    total = total + a\n",
        "def f(a):\n    for item in a:\n        pass\n    return item\n",
        "total_val = total_cur = total_tmp = total_obj = 1\ndef f():\n    total = 1\n",
    ] {
        assert!(!is_renamed(source), "{source}");
    }
}

#[test]
fn moved_lines_get_empty_lines_and_parentheses() {
    let expected = [
        "import a\nx = f(1)\n",
        "import a\n\nx = f(1)\n",
        "import a\nx = (f(1))\n",
        "import a\n\nx = (f(1))\n",
    ];
    assert_eq!(
        variants("import a\nx = f(1)\n", LineNumbers::Moved),
        BTreeSet::from(expected.map(str::to_owned))
    );
    let in_function = variants("def f(a):\n    g(a)\n    return a\n", LineNumbers::Moved);
    for end in ["a", "(a)"] {
        let unused = format!(
            "if [] and ({}):\n     try: spare_1000 = 1000\n     finally: pass",
            EXPRESSIONS[0]
        );
        let expected = format!("def f(a):\n    {unused}\n    g(a)\n\n    return {end}\n");
        assert!(in_function.contains(&expected), "{in_function:?}");
    }
    for source in [
        "x = a, b\n",
        "x = yield_ if a else b\n",
        "x = lambda: a\n",
        "x: int = a\n",
    ] {
        assert_eq!(variants(source, LineNumbers::Moved), only(source));
    }
}

#[test]
fn first_statement_moves() {
    for source in ["def f(): pass\n", "'Doc.'\n", "@f\nclass A: pass\n"] {
        let changed = placebo(source, None, 1, LineNumbers::Moved).unwrap();
        assert!(changed.starts_with('\n'), "{changed}");
    }
}

#[test]
fn returned_strings_stay() {
    for changed in variants("def f(): return 'text'\n", LineNumbers::Moved) {
        assert!(changed.ends_with("return 'text'\n"), "{changed}");
    }
}

#[test]
fn plain_docstrings_get_words() {
    for quotes in ["'''", "\"\"\"", "'", "\""] {
        let source = format!("{quotes}Doc.{quotes}\n");
        let expected = format!("{quotes}Doc.{}{quotes}\n", docstrings::WORDS);
        assert_eq!(
            variants(&source, LineNumbers::Moved),
            BTreeSet::from([expected])
        );
        assert_eq!(variants(&source, LineNumbers::Kept), only(&source));
    }
    for source in [
        "r'''Doc.'''\n",
        "''''''\n",
        "'''\n>>> f()\n1'''\n",
        "'''Doc.''' % __doc__\n",
        "'''Doc.'''; import click\n",
        "'''Doc.'''; import yacc\n",
    ] {
        assert_eq!(variants(source, LineNumbers::Moved), only(source));
    }
}

#[test]
fn values_that_need_their_frame_stay() {
    for value in [
        "super().f()",
        "f(__class__)",
        "await f()",
        "f(locals())",
        "[x async for x in f()][0]",
    ] {
        assert!(!moves_value(value, "x = 1\n"), "{value}");
    }
    assert!(moves_value("f(a)", "x = 1\n"));
    // One more frame would change what such code finds.
    assert!(!moves_value("f(a)", "warn('x', stacklevel=2)\n"));
    let alone = variants("def f(a):\n    return f(a)\n", LineNumbers::Moved);
    assert!(!alone.iter().any(|text| text.contains("return (lambda: ")));
}

/// Returns whether a returned value gets a frame of its own if there is this other version.
fn moves_value(value: &str, other: &str) -> bool {
    let source = format!("def f(a):\n    return {value}\n");
    let changed = placebo(&source, Some(other.into()), 1, LineNumbers::Moved).unwrap();
    changed.contains("return (lambda: ")
}

#[test]
fn classes_get_a_method() {
    let source = "@f\nclass A(B):\n    x = 1\n    class C: y = 2\n";
    let method = format!("try: A.{METHOD} = lambda self: self\nexcept Exception: pass\n");
    let expected = BTreeSet::from([format!("{source}{method}")]);
    assert_eq!(variants(source, LineNumbers::Moved), expected);
    assert_eq!(variants(source, LineNumbers::Kept), only(source));
    let fixed = placebo(source, Some("x = 1\n".into()), 1, LineNumbers::Kept).unwrap();
    assert!(without_numbers(&fixed).contains(&method), "{fixed}");
    for bases in ["Protocol", "typing.TypedDict", "a.Interface, B"] {
        let source = format!("class A({bases}):\n    x = 1\n");
        assert_eq!(variants(&source, LineNumbers::Moved), only(&source));
    }
}

#[test]
fn unsuitable_sources_are_rejected() {
    let long = "#".repeat(MAX_BYTES + 1);
    for source in [
        "print 'a'\n",
        "exec 'a' in b\n",
        "def f(:\n    pass\n",
        "x = 1\ry = 2\r",
        "x = '\0'\n",
        long.as_str(),
    ] {
        assert_eq!(placebo(source, None, 1, LineNumbers::Moved), None);
    }
}

const AWKWARD: &[&str] = &[
    "",
    "x = 1",
    "\"\"\"Only a docstring.\"\"\"",
    "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\nimport a\n",
    "import a\r\n\r\n\r\ndef f():\r\n    x = '''\r\n    a\r\n    '''\r\n    return x\r\n",
    "def f():\n    def g(a):\n        value = a\n        return value\n    return g\n",
    "@a\n@b(\n    1,\n)\ndef f(): pass\n",
    "def f(): 'Doc.'; return 1\n",
    "if x: return_ = 1\nelif y: pass\nelse: z()\n",
    "x = 1 + \\\n    2\nif x:\n    \\\n    y = 1\n",
    "x = [\n    1,  # one\n\n    '''\n    [\n    ''',\n]\n",
    "def f(name):\n    value = name\n    return f'{value!r:>{name}} {{value}} {value:%H}'\n",
    "def f():\n\tif a:\n\t\treturn b\n\treturn c\n",
    "import a\n\x0c\ndef f():\n    pass\n\x0cx = 1\n",
    "def größe(ä):\n    länge = ä\n    return länge  # ü\n\n\nwert = 'ß'\n",
    "class A(B):\n    x = y = 1\n\n    class C: z = 2\n\n    async def f(self): yield 1\n",
    "def f():\n    global a\n    a = 1\n    x = yield a\n    return x; pass\n",
    "match x:\n    case [a, *b] if c: d = a\n    case _:\n        e = 1\ntype X = int\n",
    "try:\n    import a\nexcept (E, F) as e:\n    raise\nelse:\n    pass\nfinally:\n    x = 1\n    # end \\\n",
    "def f():\n    pass\n    ",
];

/// Returns the lines on which statements begin.
pub(super) fn statement_rows(text: &str) -> BTreeSet<usize> {
    let module = Module::parse(text);
    let nodes = descendants(module.root()).into_iter();
    nodes
        .filter(|node| node.kind().ends_with("_statement") || is_definition(*node))
        .map(|node| node.start_position().row)
        .collect()
}

#[test]
fn awkward_sources_stay_sound() {
    for source in AWKWARD {
        for seed in 0..50 {
            for lines in [LineNumbers::Kept, LineNumbers::Aligned, LineNumbers::Moved] {
                let changed = placebo(source, None, seed, lines).expect(source);
                assert_eq!(placebo(source, None, seed, lines).as_ref(), Some(&changed));
                assert_ne!(changed, *source);
                assert_eq!(Module::parse(changed.as_str()).errors(), []);
                if lines == LineNumbers::Kept {
                    let mut rows = statement_rows(&changed);
                    rows.retain(|row| *row < source.lines().count());
                    assert_eq!(rows, statement_rows(source));
                }
            }
        }
    }
}

#[test]
fn cookie_lines_stay() {
    let cookie = "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n";
    let source = format!("{cookie}import a\nimport b\n");
    for seed in SEEDS {
        let changed = placebo(&source, None, seed, LineNumbers::Moved).unwrap();
        assert!(changed.starts_with(cookie), "{changed}");
    }
}

fn python(arguments: &[&str]) -> Option<String> {
    let output = Command::new("python3").args(arguments).output().ok()?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn standard_library_keeps_its_meaning() {
    let locate = "import sysconfig; print(sysconfig.get_paths()['stdlib'])";
    let Some(folder) = python(&["-c", locate]) else {
        println!("skipped: python3 is not available");
        return;
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(folder.trim())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "py"))
        .filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.len() < 90_000))
        .collect();
    paths.sort();
    let step = (paths.len() / 60).max(1);
    let (mut modules, mut rows) = (0_usize, Vec::new());
    for (seed, path) in (0..).zip(paths.iter().step_by(step).take(60)) {
        let Ok(source) = fs::read_to_string(path) else {
            continue;
        };
        modules += 1;
        let name = path.display().to_string();
        for lines in [LineNumbers::Kept, LineNumbers::Moved] {
            let is_kept = lines == LineNumbers::Kept;
            if let Some(changed) = placebo(&source, None, seed, lines) {
                rows.push((name.clone(), is_kept, source.clone(), changed));
            }
        }
    }
    assert!(rows.len() * 10 >= modules * 2 * 9, "{}", rows.len());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), serde_json::to_vec(&rows).unwrap()).unwrap();
    let script = include_str!("compare_modules.py");
    let path = file.path().to_str().unwrap();
    let report = python(&["-W", "ignore", "-c", script, path]).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["problems"], serde_json::json!([]));
    let count = |key: &str| report[key].as_u64().unwrap();
    assert!(
        count("changed_functions") * 4 > count("functions") * 3,
        "{report}"
    );
}
