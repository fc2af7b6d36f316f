use super::*;

fn parse(command: &str) -> Option<(String, Vec<String>)> {
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    let migration = Migration::parse(&words, "")?;
    let name = migration.program.words[0];
    let text = format!("{name} {}", migration.arguments.join(" "));
    Some((text, migration.assignments))
}

#[test]
fn commands_of_launchers_are_recognized() {
    for (command, expected) in [
        ("alembic upgrade head", "alembic upgrade head"),
        (
            "- run: poetry run alembic upgrade head",
            "alembic upgrade head",
        ),
        (
            "uv run --group dev alembic -x a=b upgrade head",
            "alembic -x a=b upgrade head",
        ),
        (
            "$(VENV)/bin/python -m alembic upgrade head",
            "alembic upgrade head",
        ),
        (
            "docker compose run --rm web flask db upgrade",
            "flask db upgrade",
        ),
        ("commands = aerich upgrade", "aerich upgrade"),
        (
            "./manage.py migrate --noinput >/dev/null",
            "manage.py migrate --noinput",
        ),
        (
            "litestar --app a:b database upgrade --no-prompt",
            "litestar --app a:b database upgrade --no-prompt",
        ),
        (
            "piccolo migrations forwards all",
            "piccolo migrations forwards all",
        ),
        ("yoyo apply --batch", "yoyo apply --batch"),
    ] {
        let text = parse(command).map(|(text, _)| text);
        assert_eq!(text.as_deref(), Some(expected), "{command}");
    }
    for command in [
        "echo alembic upgrade head",
        "alembic downgrade base",
        "alembic history upgrade",
        "alembic upgrade ${REVISION}",
        "pip install alembic upgrade",
        "python manage.py test migrate",
        "flask db init",
    ] {
        assert_eq!(parse(command), None, "{command}");
    }
}

#[test]
fn literal_assignments_stay() {
    let (_, assignments) =
        parse("A_B=1 URL=$URL env FLASK_APP=shop.py flask db upgrade").unwrap_or_default();
    assert_eq!(assignments, ["A_B=1", "FLASK_APP=shop.py"]);
    let (_, assignments) =
        parse("docker exec -e URL=db web sh -c FLASK_APP=a flask db upgrade").unwrap_or_default();
    assert_eq!(assignments, ["FLASK_APP=a"]);
}

#[test]
fn words_are_quoted_if_needed() {
    for (word, expected) in [
        ("a=b/c", "a=b/c"),
        ("a b", "'a b'"),
        ("it's", "'it'\\''s'"),
        ("", "''"),
    ] {
        assert_eq!(quote(word), expected);
    }
}
