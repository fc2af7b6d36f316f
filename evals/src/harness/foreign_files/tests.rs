use super::*;

#[test]
fn plugin_for_tests_of_plugins_is_harmless() {
    for (source, is_harmless) in [
        ("pytest_plugins = \"pytester\"\n", true),
        (
            "x = 1\npytest_plugins = ['pytester']  # for `testdir`\n",
            true,
        ),
        ("pytest_plugins = (\"_pytest.pytester\",)\n", true),
        ("pytest_plugins = ['pytester', 'tests.hooks']\n", false),
        ("pytest_plugins = [\n    'tests.hooks']\n", false),
        ("pytest_plugins = ['pytester',\n    'tests.hooks']\n", false),
        ("pytest_plugins = ('pytester'\n    '.hooks')\n", false),
        (
            "pytest_plugins = ['pytester']\npytest_plugins += hooks\n",
            false,
        ),
        ("pytest_plugins = ['pytester']; x = hooks\n", false),
        (
            "pytest_plugins = 'pytester' # \rpytest_plugins = 'hooks'\n",
            false,
        ),
        (
            "pytest_plugins = 'pytester,' \"\"\"\n\"\"\" 'hooks'\n",
            false,
        ),
        ("pytest_plugins = ['pytester']\r\n", true),
        ("if x:\n    pytest_plugins = ['pytester']\n", false),
    ] {
        assert_eq!(loads_only_pytester(source), is_harmless, "{source}");
    }
}
