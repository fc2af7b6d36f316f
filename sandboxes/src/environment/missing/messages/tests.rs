use super::*;

#[test]
fn messages_name_packages() {
    for (text, name, is_package) in [
        (
            "E   sqlalchemy_utils.exceptions.ImproperlyConfigured: 'babel' package is required in order to use \
             CurrencyType",
            "babel",
            true,
        ),
        (
            "E   ImportError: tabulate is required for this",
            "tabulate",
            true,
        ),
        (
            "RuntimeError: The testclient requires the httpx package.",
            "httpx",
            true,
        ),
        (
            "E   ValueError: This needs\nE   python-magic to be there",
            "python-magic",
            false,
        ),
        (
            "E   Exception: Support for it is off. Please install `lxml[x]` first.",
            "lxml",
            false,
        ),
        (
            "E   x.MissingDependency: pyarrow must be installed to read it",
            "pyarrow",
            false,
        ),
        ("E   RuntimeError: redis is not installed.", "redis", false),
        ("E   ValueError: aiofile isn't installed", "aiofile", false),
        (
            "E   ValueError: the lxml library can't be found",
            "lxml",
            true,
        ),
        (
            "E   OSError: you need to have lxml installed",
            "lxml",
            false,
        ),
        ("E   ImportError: Could not import 'lxml'.", "lxml", true),
        ("E   OSError: cannot find the module lxml", "lxml", false),
        (
            "E   ImportError: Unable to import required dependencies: numpy: x",
            "numpy",
            true,
        ),
        (
            "E   ValueError: requires version '2.7' or newer of 'numexpr'",
            "numexpr",
            false,
        ),
        (
            "E   ValueError: please install either of PyQt5 or PySide2.",
            "PySide2",
            false,
        ),
        (
            "E   OSError: requires the Python library orjson",
            "orjson",
            false,
        ),
    ] {
        let name = name.to_owned();
        let expected = RequestedName { name, is_package };
        assert!(requested_names(text).contains(&expected), "{text}");
    }
}

#[test]
fn prose_and_compared_values_name_nothing() {
    for text in [
        "Please install babel first.",
        "E   AssertionError: babel is not installed",
        "E   assert 'babel is required' == ''",
        "note: babel is not installed",
        "E   ValueError: wrong number of items",
    ] {
        assert!(requested_names(text).is_empty(), "{text}");
    }
}
