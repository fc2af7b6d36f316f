//! Detection of Django's settings, and of the files that its own test runner would collect.
//!
//! Tests run with pytest and pytest-django, in the way `manage.py test` would run them. Django itself, and its forks,
//! keep their own runner.

use super::project_metadata::ProjectMetadata;
use super::{Files, package_name, text, workflows};
use crate::pattern::Pattern;
use crate::recipe::Runner;
use crate::repository::Tree;
use crate::sandbox::Result;

/// The module that stands for settings which a script passes to `settings.configure()`.
const CONFIGURED_MODULE: &str = "testwright_django_settings";

/// Scripts that run the tests of reusable apps.
const TEST_SCRIPTS: &str = "runtests.py run_tests.py tests/runtests.py tests/run_tests.py test_runner.py testrunner.py \
                            quicktest.py tests/__main__.py setuptest.py";

/// Modules beside the usual settings that hold those for tests.
const TEST_SETTINGS: &str =
    "test tests testing test_settings settings_test settings_tests testsettings ci";

/// The settings and patterns with which pytest runs the tests of a Django project.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Django {
    /// Value of `DJANGO_SETTINGS_MODULE`, unless the project's own configuration sets it.
    pub settings: Option<String>,
    /// Folder of manage.py, from which the settings are imported.
    pub folder: String,
    /// Script that calls `settings.configure()`.
    pub script: Option<String>,
    /// Patterns of test files, unless the project's configuration has some.
    pub patterns: Option<&'static str>,
    /// Whether the tables of the tests are created from the models, because no migration is committed.
    pub lacks_migrations: bool,
}

/// Detects Django in the root of a tree. Returns `None` if the project does not depend on it, or its tests need no
/// settings.
pub(super) fn detect(tree: &Tree, files: &Files) -> Result<Option<Django>> {
    let options = files.pytest_settings();
    let has = |name: &str| {
        options
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let is_direct = depends_on_django(tree, files)?;
    let manage = manage_py(tree, is_direct)?;
    let folder = manage.as_ref().map_or("", |(folder, _)| folder.as_str());
    let lacks_migrations = lacks_migrations(tree)?;
    let patterns = (!has("python_files")).then_some("test_*.py *_test.py test*.py tests.py");
    let configured = has("DJANGO_SETTINGS_MODULE")
        || has("DJANGO_CONFIGURATION")
        || options
            .iter()
            .any(|(key, value)| key == "addopts" && value.contains("--ds"));
    if configured {
        return Ok(is_direct.then(|| Django {
            folder: folder.to_owned(),
            patterns,
            lacks_migrations,
            ..Django::default()
        }));
    }
    if configured_by_conftest(tree)? {
        return Ok(None);
    }
    let to_project = |settings: String, folder: &str| Django {
        settings: Some(settings),
        folder: folder.to_owned(),
        script: None,
        patterns,
        lacks_migrations,
    };
    if (is_direct || manage.is_some())
        && let Some(settings) = named_for_tests(tree, files)?
    {
        let folders = ["", folder];
        let folder = module_root(tree, &settings, &folders).unwrap_or_default();
        return Ok(Some(to_project(settings, &folder)));
    }
    for script in TEST_SCRIPTS.split(' ') {
        let code = text(tree, script)?.unwrap_or_default();
        if code.contains("pytest") || !code.contains("django") {
            continue;
        }
        if let Some(settings) = assigned(&code) {
            let place = script.rsplit_once('/').map_or("", |(folder, _)| folder);
            let place = module_root(tree, &settings, &["", place]).unwrap_or_default();
            return Ok(Some(to_project(settings, &place)));
        }
        if code.contains("settings.configure(") {
            return Ok(Some(Django {
                script: Some(script.to_owned()),
                ..to_project(CONFIGURED_MODULE.to_owned(), "")
            }));
        }
    }
    if let Some((folder, settings)) = manage {
        let settings = for_tests(tree, &folder, &settings).unwrap_or(settings);
        return Ok(Some(to_project(settings, &folder)));
    }
    let only = match is_direct {
        true => only_settings(tree)?,
        false => None,
    };
    Ok(only.map(|(settings, folder)| to_project(settings, &folder)))
}

impl Django {
    /// Returns the command that writes the module of settings that a script passes to `settings.configure()`.
    pub(super) fn write_settings(&self, project: &str) -> Option<String> {
        let script = self.script.as_ref()?;
        let path = match project {
            "" => script.clone(),
            project => format!("{project}/{script}"),
        };
        Some(format!(
            "cat > \"$(python -c 'import sysconfig; print(sysconfig.get_paths()[\"purelib\"])')/{CONFIGURED_MODULE}.py\" \
             <<'END'\n{}END",
            CONFIGURED_SETTINGS
                .replace("SCRIPT", script)
                .replace("PLACE", &path)
        ))
    }
}

/// Code that runs a script up to its call of `settings.configure()`, and takes over the arguments.
const CONFIGURED_SETTINGS: &str = r#"# The settings that SCRIPT passes to settings.configure().
import os.path, runpy, sys
from django import conf
class Configured(BaseException):
    pass
def configure(self, default_settings=None, **options):
    for name in dir(default_settings):
        if name.isupper():
            globals()[name] = getattr(default_settings, name)
    globals().update(options)
    raise Configured
_kept, _argv = conf.LazySettings.configure, sys.argv
conf.LazySettings.configure, sys.argv = configure, ["SCRIPT"]
try:
    runpy.run_path(next(p for p in ("SCRIPT", "PLACE") if os.path.exists(p)), run_name="__main__")
except Configured:
    pass
finally:
    conf.LazySettings.configure, sys.argv = _kept, _argv
"#;

/// Returns whether apps with models have packages for migrations, but none of the packages has a migration. Developers
/// then create the migrations themselves. The empty module of a new app has no models.
fn lacks_migrations(tree: &Tree) -> Result<bool> {
    let mut is_app = false;
    for path in tree.paths().filter(|path| path.ends_with(".py")) {
        let Some((app, module)) = path.rsplit_once("migrations/") else {
            continue;
        };
        if !app.ends_with('/') {
            continue;
        }
        if module != "__init__.py" {
            return Ok(false);
        }
        let models = text(tree, &format!("{app}models.py"))?.unwrap_or_default();
        is_app |= models.contains("class ") || tree.contains(&format!("{app}models/__init__.py"));
    }
    Ok(is_app)
}

/// Returns Django's own runner if the repository is Django or a fork of it.
pub(super) fn own_runner(tree: &Tree) -> Option<Runner> {
    let is_django = tree.contains("tests/runtests.py") && tree.contains("django/test/runner.py");
    is_django.then(|| Runner {
        kind: "django".to_owned(),
        options: vec![
            "--settings=test_sqlite".to_owned(),
            "--parallel=1".to_owned(),
        ],
    })
}

static ASSIGNED: Pattern =
    Pattern::new(r#"DJANGO_SETTINGS_MODULE["']?\s*[\]]?\s*[,=:]\s*["']?([A-Za-z_][\w.]*)"#);
static OPTION: Pattern = Pattern::new(r"\btest\b[^\n]*--settings[= ]([A-Za-z_][\w.]*)");

/// Returns the module that a text assigns to `DJANGO_SETTINGS_MODULE`.
fn assigned(text: &str) -> Option<String> {
    let module = ASSIGNED.captures(text)?[1].trim_end_matches('.').to_owned();
    // The right side may be a variable.
    let is_name = ["os", "None", "str", "settings_module"].contains(&module.as_str());
    (!is_name).then_some(module)
}

/// Returns the settings that tox, the Makefile or a CI workflow uses for tests.
fn named_for_tests(tree: &Tree, files: &Files) -> Result<Option<String>> {
    let tox = files.tox.list("testenv", "setenv");
    if let Some(settings) = tox.iter().find_map(|line| assigned(line)) {
        return Ok(Some(settings));
    }
    let others = [
        "tox.ini",
        "Makefile",
        "makefile",
        ".travis.yml",
        ".gitlab-ci.yml",
        "setup.cfg",
    ];
    for path in others.into_iter().chain(workflows(tree)) {
        let text = text(tree, path)?.unwrap_or_default();
        let option = OPTION
            .captures(&text)
            .map(|captures| captures[1].to_owned());
        let settings_module = option.or_else(|| assigned(&text).filter(|_| path != "setup.cfg"));
        if let Some(settings) = settings_module.filter(|module| has_module(tree, module)) {
            return Ok(Some(settings));
        }
    }
    Ok(None)
}

/// Returns whether a module of this name is anywhere in the tree.
fn has_module(tree: &Tree, module: &str) -> bool {
    let path = module.replace('.', "/");
    let ends = [format!("{path}.py"), format!("{path}/__init__.py")];
    let fits = |path: &str, end: &String| {
        path.strip_suffix(end.as_str())
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    tree.paths()
        .any(|path| ends.iter().any(|end| fits(path, end)))
}

/// Returns the first of these folders from which a module can be imported.
fn module_root(tree: &Tree, module: &str, folders: &[&str]) -> Option<String> {
    let path = module.replace('.', "/");
    let contains = |folder: &&&str| {
        let prefix = match **folder {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        tree.contains(&format!("{prefix}{path}.py"))
            || tree.contains(&format!("{prefix}{path}/__init__.py"))
    };
    folders
        .iter()
        .find(contains)
        .map(|folder| (*folder).to_owned())
}

/// Returns the folder of manage.py and the settings that it names: in the root, or in the only folder that has one.
fn manage_py(tree: &Tree, with_nested: bool) -> Result<Option<(String, String)>> {
    let nested = tree.paths().filter(|path| {
        let is_product = |folder: &str| !["doc", "docs", "template", "templates"].contains(&folder);
        with_nested
            && path.matches('/').count() <= 2
            && path.ends_with("/manage.py")
            && !path.contains(['{', '%'])
            && path.split('/').all(is_product)
    });
    let nested: Vec<&str> = nested.collect();
    let place = match (tree.contains("manage.py"), nested.as_slice()) {
        (true, _) => "manage.py",
        (false, [only]) => only,
        _ => return Ok(None),
    };
    let settings = assigned(&text(tree, place)?.unwrap_or_default());
    let folder = place.rsplit_once('/').map_or("", |(folder, _)| folder);
    Ok(settings.map(|settings| (folder.to_owned(), settings)))
}

/// Returns the settings for tests beside other settings, such as `config.settings.test` beside `config.settings.local`.
fn for_tests(tree: &Tree, folder: &str, settings: &str) -> Option<String> {
    let exists = |module: &String| module_root(tree, module, &[folder]).is_some();
    let is_package = module_root(tree, &format!("{settings}.__init__"), &[folder]).is_some();
    let parent = match is_package {
        true => Some(settings),
        false => settings.rsplit_once('.').map(|(parent, _)| parent),
    };
    let module = |name: &str| match parent {
        Some(parent) => format!("{parent}.{name}"),
        None => name.to_owned(),
    };
    let own = settings.rsplit('.').next().unwrap_or(settings);
    let is_other = |name: &&str| {
        *name != own
            && (is_package
                || parent.is_some_and(|p| p.contains("settings"))
                || name.contains("settings"))
    };
    let names = TEST_SETTINGS.split(' ').filter(is_other);
    names.map(module).find(exists)
}

/// Returns the only module of settings, and the folder to import it from. Modules in folders of tests count first.
fn only_settings(tree: &Tree) -> Result<Option<(String, String)>> {
    let is_named = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.ends_with(".py") && name.contains("settings") && path.matches('/').count() <= 3
    };
    let mut settings_files = Vec::new();
    for path in tree.paths().filter(is_named) {
        let code = text(tree, path)?.unwrap_or_default();
        if code.contains("INSTALLED_APPS")
            && (code.contains("SECRET_KEY") || code.contains("DATABASES"))
        {
            settings_files.push(path.to_owned());
        }
    }
    let in_tests: Vec<String> = settings_files
        .iter()
        .filter(|path| path.contains("test"))
        .cloned()
        .collect();
    let only = match (settings_files.as_slice(), in_tests.as_slice()) {
        ([only], _) | (_, [only]) => only,
        _ => return Ok(None),
    };
    let module = only.trim_end_matches(".py");
    // Packages end at the first folder without __init__.py, except that the root can hold namespace packages.
    let mut folder = "";
    for (at, _) in module.match_indices('/') {
        if !tree.contains(&format!("{}/__init__.py", &module[..at])) {
            folder = &module[..at];
        }
    }
    let name = module[folder.len()..]
        .trim_start_matches('/')
        .replace('/', ".");
    Ok(Some((name, folder.to_owned())))
}

/// Returns whether a conftest configures Django itself.
fn configured_by_conftest(tree: &Tree) -> Result<bool> {
    let conftests = tree.paths().filter(|path| {
        path.matches('/').count() <= 2 && path.rsplit('/').next() == Some("conftest.py")
    });
    for path in conftests {
        let code = text(tree, path)?.unwrap_or_default();
        if code.contains("settings.configure(")
            || code.contains("DJANGO_SETTINGS_MODULE")
            || code.contains("django.setup()")
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether the project itself requires Django, not only an extra or an example.
fn depends_on_django(tree: &Tree, files: &Files) -> Result<bool> {
    let is_django = |line: &str| package_name(line) == "django";
    let metadata = ProjectMetadata::read(tree)?;
    let groups = files
        .pyproject
        .get("dependency-groups")
        .map(toml::Value::to_string);
    if metadata.dependencies.iter().any(|line| is_django(line))
        || groups.is_some_and(|groups| groups.to_lowercase().contains("\"django"))
    {
        return Ok(true);
    }
    let is_list = |path: &&str| {
        let is_near = !path.contains('/') || path.starts_with("requirements/");
        is_near
            && path.matches('/').count() <= 1
            && path.contains("require")
            && !path.ends_with(".py")
    };
    for path in tree.paths().filter(is_list).chain(["Pipfile"]) {
        if text(tree, path)?.unwrap_or_default().lines().any(is_django) {
            return Ok(true);
        }
    }
    Ok(false)
}
