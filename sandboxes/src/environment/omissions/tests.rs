use super::*;

#[test]
fn unbuildable_requirements_are_separated() {
    let lines = [
        "pytest",
        "MySQL_client==2.2.8 ; python_version > '3'",
        "web",
    ];
    let lines = lines.map(str::to_owned);
    let split = |text: &str| {
        let text = text.to_owned();
        split_failed(&lines, &StepOutput { code: 1, text })
    };
    let (omitted, rest) = split("  × Failed to build `mysql-client==2.2.8`").unwrap_or_default();
    assert_eq!(omitted, [lines[1].as_str()]);
    assert_eq!(rest, ["pytest", "web"]);
    for text in [
        "× No solution found when resolving dependencies:",
        "  × Failed to build `needed-by-web==1`",
        "  × Failed to build `pytest==3.0`",
    ] {
        assert_eq!(split(text), None, "{text}");
    }
}

#[test]
fn plain_words_of_builds_are_reasons() {
    let output = "error: Failed to build `pysqlite==2.8.3`\n  cause: The build backend returned an error\n  cause: Call to \
                      `setuptools.build_meta.build_wheel` failed (exit status: 1)\n\n         [stdout]\n         pysqlite is not \
                      supported on Python 3.\n\nhint: Build failures usually indicate a problem with the package\n";
    assert_eq!(reason(output), " (pysqlite is not supported on Python 3.)");
    assert_eq!(reason("x\n"), "");
}

#[test]
fn unreachable_addresses_are_separated() {
    let output = "   Updating https://host/a/web.git (main)\nerror: Git operation failed\n  cause: failed to fetch\n         \
                      fatal: unable to access 'https://host/a/web.git/': CONNECT tunnel failed\n";
    for (line, is_failed) in [
        ("git+https://host/a/web.git@main#egg=web", true),
        (
            "web @ git+https://host/a/web.git ; python_version > '3'",
            true,
        ),
        ("git+https://user@host/a/other.git", false),
        ("git+https://host/a/we", false),
        ("pytest @ git+https://host/a/web", false),
        ("web", false),
    ] {
        let lines = ["pytest", line].map(str::to_owned);
        let text = output.to_owned();
        let split = split_failed(&lines, &StepOutput { code: 1, text });
        assert_eq!(split.is_some(), is_failed, "{line}");
    }
}
