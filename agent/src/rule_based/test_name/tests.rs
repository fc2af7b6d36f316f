use super::*;

fn name(names: &[&str], keywords: &[&str], behaviour: Behaviour) -> String {
    let owned = |all: &[&str]| all.iter().map(|n| (*n).to_owned()).collect();
    let subject = Subject {
        names: owned(names),
        keywords: owned(keywords),
    };
    test_name(&subject, &behaviour, "")
}

#[test]
fn name_has_call_and_expected_value() {
    let gives = |value: &str| Behaviour::Gives(value.to_owned());
    assert_eq!(
        name(&["slugify"], &["max_length"], gives("'how-to'")),
        "test_slugify_with_max_length_returns_how_to"
    );
    assert_eq!(
        name(&["Basket", "total"], &[], gives("-1.5")),
        "test_basket_total_returns_minus_1_point_5"
    );
    assert_eq!(
        name(&["low"], &[], gives("[1, 2]")),
        "test_low_returns_1_and_2"
    );
    assert_eq!(
        name(&["low"], &[], gives("a.Grid([1])")),
        "test_low_returns_expected_grid"
    );
    for (value, kind) in [
        ("[[1], 2]", "list"),
        ("{'a': 1}", "dict"),
        ("{1, 2}", "set"),
        ("(1, [2])", "tuple"),
        ("'a <b>'", "text"),
        ("sin(x)", "value"),
        ("Grid(1) + Grid(2)", "value"),
        ("x + 1", "value"),
    ] {
        let expected = format!("test_low_returns_expected_{kind}");
        assert_eq!(name(&["low"], &[], gives(value)), expected, "{value}");
    }
    assert_eq!(name(&["low"], &[], gives("zoo")), "test_low_returns_zoo");
    assert_eq!(name(&[], &[], gives("''")), "test_returns_empty_string");
    let contains = Behaviour::Contains("[default: name]".to_owned());
    assert_eq!(
        name(&["invoke"], &[], contains),
        "test_invoke_contains_default_name"
    );
}

#[test]
fn condition_of_title_replaces_general_value() {
    let subject = Subject {
        names: vec!["low".to_owned()],
        ..Subject::default()
    };
    for (title, name) in [
        (
            "Matrix of `low` is wrong for nested CompoundModels",
            "test_low_for_nested_compound_models",
        ),
        (
            "low() fails when the first line is not empty.",
            "test_low_when_first_line_is_not_empty",
        ),
        (
            "low with HTTP-only cookies does not work on Windows",
            "test_low_with_http_only_cookies",
        ),
        ("low for acsc and asec", "test_low_for_acsc_and_asec"),
        // These are complaints, incomplete, or too long.
        (
            "low crashes with OverflowError",
            "test_low_returns_expected_grid",
        ),
        ("low if n_init>1", "test_low_returns_expected_grid"),
        (
            "low if all of the boxes in one row are empty",
            "test_low_returns_expected_grid",
        ),
        ("low is slow", "test_low_returns_expected_grid"),
    ] {
        let gives = Behaviour::Gives("Grid([1])".to_owned());
        assert_eq!(test_name(&subject, &gives, title), name, "{title}");
    }
    let gives = Behaviour::Gives("3".to_owned());
    let title = "low for nested models";
    assert_eq!(test_name(&subject, &gives, title), "test_low_returns_3");
}

#[test]
fn function_of_title_replaces_missing_call() {
    for (title, name) in [
        ("`Box.open()` is slow", "test_open_returns_3"),
        ("Wrong result of is_open(5)", "test_is_open_returns_3"),
        ("Box is slow", "test_returns_3"),
        ("`1 + 2` is slow", "test_returns_3"),
    ] {
        let gives = Behaviour::Gives("3".to_owned());
        let subject = Subject::default();
        assert_eq!(test_name(&subject, &gives, title), name, "{title}");
    }
}

#[test]
fn name_says_what_is_not_expected() {
    let not = |name: &str| Behaviour::DoesNotRaise(name.to_owned());
    assert_eq!(
        name(&["_turn"], &[], not("HTTPError")),
        "test_turn_does_not_raise_http_error"
    );
    assert_eq!(
        name(&["low"], &[], Behaviour::Raises("ValueError".to_owned())),
        "test_low_raises_value_error"
    );
    assert_eq!(
        name(&["low"], &[], Behaviour::DoesNotGiveAll),
        "test_low_returns_other_values"
    );
}

#[test]
fn wrong_value_is_named_only_exactly() {
    let not = |value: &str| Behaviour::DoesNotGive(value.to_owned());
    assert_eq!(name(&["low"], &[], not("3")), "test_low_does_not_return_3");
    // The right value may have the same words.
    assert_eq!(
        name(&["low"], &[], not("'how-to-'")),
        "test_low_returns_other_value"
    );
    assert_eq!(
        name(&["low"], &[], not("'How'")),
        "test_low_returns_other_value"
    );
}

#[test]
fn long_names_lose_whole_parts() {
    let gives = || Behaviour::Gives("'one two three four five six seven eight'".to_owned());
    assert_eq!(
        name(&["Dataset", "stack_columns"], &["headers"], gives()),
        "test_dataset_stack_columns_returns_expected_text"
    );
    let long = "a_function_with_a_name_of_more_than_sixty_characters_for_this_test";
    assert_eq!(name(&[long], &[], gives()), "test_returns_expected_value");
}
