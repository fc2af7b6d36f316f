//! Failures that follow from what the environment was built without.

use super::super::decisive::Failure;
use super::network::allow_host;
use super::{captured, code, debian_package, system_package};
use crate::environment::module_packages::package_of;
use crate::pattern::Pattern;
use crate::recipe::normalized_name;
use crate::repository::{EMPTY_SUBMODULES, LFS_POINTERS};

/// Start of the note about a variable whose value was guessed, before `NAME=VALUE`.
pub(in crate::environment) const SET: &str = "set ";

/// Start of the note about a requirement that was omitted.
const OMITTED: &str = "requirement ";

/// Signs of a build that does not find its library.
static NOT_FOUND: Pattern = Pattern::new("Can not find|not found|[Cc]ould not find|No such file");

/// Signs of code for Python 2, which no environment has.
static PYTHON_2: Pattern = Pattern::new(concat!(
    "not supported on Python 3|Missing parentheses in call to 'print'",
    "|requires Python '?2",
));

/// Modules whose packages are compiled against a library, and these packages. They are not in `module_packages`, because a
/// missing one cannot be installed just like that.
const COMPILED: [(&str, &str); 12] = [
    ("bluetooth", "pybluez"),
    ("cairo", "pycairo"),
    ("cups", "pycups"),
    ("dbus", "dbus-python"),
    ("gi", "pygobject"),
    ("ldap", "python-ldap"),
    ("libvirt", "libvirt-python"),
    ("osgeo", "gdal"),
    ("pysqlite2", "pysqlite"),
    ("snappy", "python-snappy"),
    ("systemd", "systemd-python"),
    ("talib", "ta-lib"),
];

/// Returns advice if the failure follows from what was left out of the environment, does not fit in it or was guessed, as
/// stated in `notes`.
pub(in crate::environment::failure_hints) fn advice(
    failure: &Failure<'_>,
    notes: &[String],
) -> Option<String> {
    submodule(failure, notes)
        .or_else(|| lfs_pointer(failure, notes))
        .or_else(|| requirement(failure, notes))
        .or_else(|| contradiction(failure, notes))
        .or_else(|| guessed_variable(failure, notes))
}

/// Returns the paths that a note about submodules names.
fn submodules(notes: &[String]) -> Vec<&str> {
    let note = notes
        .iter()
        .find_map(|note| note.strip_prefix(EMPTY_SUBMODULES));
    let paths = note.map_or("", |note| note.split(" (").next().unwrap_or(note));
    paths
        .split(", ")
        .filter(|path| !path.is_empty() && *path != "…")
        .collect()
}

static LOOKS_MISSING: Pattern = Pattern::new(concat!(
    "No such file|not found|does not exist|not an existing directory|does not contain|No module named",
    "|Cannot find source file|can't find|cannot find",
));

static IS_ABOUT_FILES: Pattern =
    Pattern::new("CMake Error|No such file|does not contain|Cannot find source file");

fn submodule(failure: &Failure<'_>, notes: &[String]) -> Option<String> {
    let paths = submodules(notes);
    let last = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    // A module is usually imported by the name of the folder, a file is missing at the path.
    let named = paths.iter().find(|path| {
        failure.error.contains(**path) || {
            let name = last(path);
            name.len() > 2
                && captured(&format!(r"\b({})\b", regex::escape(&name)), &failure.error).is_some()
        }
    });
    if paths.is_empty() || !LOOKS_MISSING.is_match(&failure.error) {
        return None;
    }
    let is_about_files = named.is_some() || IS_ABOUT_FILES.is_match(&failure.error);
    let path = named.or(paths.first())?;
    is_about_files.then(|| {
        format!(
            "the submodule {path} is empty: run `git submodule update --init --recursive` in a clone, and pass that \
             folder with --repo"
        )
    })
}

/// Errors of programs that read a pointer of Git LFS instead of data.
static MISREAD: Pattern = Pattern::new(concat!(
    r"git-lfs\.github\.com|invalid load key, 'v'|contains pickled \(object\) data|file containing pickled data",
    r"|No SIMPLE card found|Unknown file format|Format not recognised|could not be opened successfully",
    r"|cannot identify image file|File is not a zip file|not a gzip file|Not a gzipped file \(b've'\)",
    r"|file signature not found|file is not a database|Parquet magic bytes not found",
));

fn lfs_pointer(failure: &Failure<'_>, notes: &[String]) -> Option<String> {
    let note = notes
        .iter()
        .find_map(|note| note.strip_prefix(LFS_POINTERS))?;
    let paths = || note.split(", ").filter(|path| *path != "…");
    let is_opened = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.len() > 3 && failure.output.contains(name)
    };
    let what = match paths().find(is_opened) {
        Some(path) => format!("{path} is a pointer"),
        None if MISREAD.is_match(&failure.error) => format!("{} is a pointer", paths().next()?),
        None => return None,
    };
    Some(format!(
        "{what} of Git LFS without its content: run `git lfs pull` in a clone, and pass a copy of its folder without \
         .git with --repo"
    ))
}

/// Returns the names of the requirements that notes say were omitted, as written.
fn omitted(notes: &[String]) -> Vec<&str> {
    let line = |note: &&String| note.starts_with(OMITTED) && note.contains("omitted");
    let notes = notes.iter().filter(line);
    notes
        .filter_map(|note| {
            note.strip_prefix(OMITTED)?
                .split(" could not be installed")
                .next()
        })
        .collect()
}

/// Returns the name of the package that a requirement installs, which can be an address without a name.
fn package_name(requirement: &str) -> String {
    let is_named = !requirement.contains("://") || requirement.contains(" @ ");
    let by_address = || {
        captured(r"[#&]egg=([\w.-]+)", requirement).or_else(|| {
            captured(
                r"://[^#;\s]*/([\w.-]+?)(?:\.git)?(?:@[^/#;\s]*)?(?:[#;\s].*)?$",
                requirement,
            )
        })
    };
    let name = by_address().filter(|_| !is_named);
    normalized_name(name.as_deref().unwrap_or(requirement))
}

/// Returns the reason in the note about an omitted requirement.
fn reason<'n>(notes: &'n [String], requirement: &str) -> Option<&'n str> {
    let is_about = |note: &&String| {
        note.strip_prefix(OMITTED)
            .is_some_and(|rest| rest.starts_with(requirement))
    };
    let (_, reason) = notes.iter().find(is_about)?.split_once("omitted (")?;
    reason.strip_suffix(')')
}

fn requirement(failure: &Failure<'_>, notes: &[String]) -> Option<String> {
    let module = captured(r"No module named '?(\w+)", &failure.line)
        .or_else(|| captured(r"cannot import name '\w+' from '(\w+)", &failure.line))?;
    let package = normalized_name(&module);
    let omitted = omitted(notes);
    let provides = |line: &&&str| {
        let name = package_name(line);
        name == package
            || [
                format!("py{package}"),
                format!("python-{package}"),
                format!("{package}-python"),
                format!("django-{package}"),
            ]
            .contains(&name)
            || package_of(&module).is_some_and(|package| name == package)
            || COMPILED.contains(&(module.as_str(), name.as_str()))
    };
    let line = omitted.iter().find(provides)?;
    let reason = reason(notes, line).unwrap_or_default();
    if line.contains("git+ssh://") {
        return Some(format!(
            "{module} comes from the requirement {line}, but a build cannot use ssh: require a release of it, or its \
             address with git+https:// (--requirement)"
        ));
    }
    if let Some(host) = captured(r"^([\w.-]+:\d+) was refused$", reason) {
        let name = line.split([' ', '@', '[']).next().unwrap_or(line);
        let what = format!("{module} comes from the requirement {name}, whose installation");
        return Some(allow_host(&what, &host));
    }
    let mut rules = super::all().filter(|rule| rule.omission);
    let lacks = |failure: Failure<'_>| rules.find_map(|rule| rule.recognize(&failure));
    if let Some(lack) = Failure::read(reason).and_then(lacks) {
        return Some(format!(
            "{module} comes from the requirement {line}, but {lack}"
        ));
    }
    let is_lack = NOT_FOUND.is_match(reason);
    let library = debian_package("requirements", &package_name(line));
    if let Some(package) = library.filter(|_| is_lack) {
        let what = format!(
            "{module} comes from the requirement {line}, but the library that it is compiled against is missing"
        );
        return Some(system_package(&what, Some(package)));
    }
    if PYTHON_2.is_match(reason) {
        return Some(format!(
            "{module} comes from the requirement {line}, whose code is for Python 2: require another version or \
             package (--requirement), or choose a newer commit with --commit"
        ));
    }
    Some(format!(
        "{module} comes from the requirement {line}, which could not be installed: use an older Python (--python \
         X.Y) if it is pinned, or require a version that can be installed (--requirement)"
    ))
}

/// Signs of code that another version of a package breaks.
static MISFITS: Pattern =
    Pattern::new("(?:Type|Attribute|ModuleNotFound)Error:|ImportError: cannot import name");

/// Explains an error inside one of two packages that contradict each other.
fn contradiction(failure: &Failure<'_>, notes: &[String]) -> Option<String> {
    if !MISFITS.is_match(&failure.line) {
        return None;
    }
    notes.iter().find_map(|note| {
        let rest = note.strip_prefix(OMITTED)?;
        let (line, reason) = rest.split_once(" contradicts others and was installed")?;
        // The resolver names the package whose needs are not met.
        let names = r"Because (?:only )?([\w.-]+)\S* depends on ([\w.-]+)(\S*)";
        let names = regex::Regex::new(names).ok()?.captures(reason)?;
        let needed = normalized_name(&names[2]);
        if normalized_name(line) != needed {
            return None;
        }
        let package = names[1].to_owned();
        let is_inside = [normalized_name(&package), needed].iter().any(|name| {
            let folder = format!("site-packages/{}/", name.replace('-', "_"));
            failure.output.to_lowercase().contains(&folder)
        });
        is_inside.then(|| {
            let fitting = format!("{}{}", &names[2], &names[3]);
            let fitting = fitting.trim_end_matches(',');
            format!(
                "{line} contradicts {package}, which needs {fitting}: change one of the two requirements, or pass \
                 --requirement '{fitting}'"
            )
        })
    })
}

/// Maximum lines at the end of an output in which an error's code is searched for.
const MAX_TRACEBACK: usize = 30;

/// Signs of an error about a value.
static REJECTIONS: Pattern =
    Pattern::new(r"ValueError|ImproperlyConfigured|ValidationError|binascii\.Error");

/// Explains an error that rejects the value of a variable that was guessed. The error names the variable, or the line of
/// the code that raised it does.
fn guessed_variable(failure: &Failure<'_>, notes: &[String]) -> Option<String> {
    // A variable that is still missing is another matter.
    if !REJECTIONS.is_match(&failure.line) || code::variable(failure).is_some() {
        return None;
    }
    let lines: Vec<&str> = failure.output.lines().collect();
    let end = lines[lines.len().saturating_sub(MAX_TRACEBACK)..].join("\n");
    let assignment = |note: &String| {
        let (assignment, _) = note.strip_prefix(SET)?.rsplit_once(": ")?;
        // The file that has the value can follow it.
        let (name, value) = assignment.split_once('=')?;
        let value = value.split(", as ").next().unwrap_or(value);
        Some((name.to_owned(), value.to_owned()))
    };
    let is_named = |name: &str| {
        let pattern = format!(r"(?i)\b({})\b", regex::escape(name));
        captured(&pattern, &end).is_some()
    };
    let mut guesses = notes.iter().filter_map(assignment);
    let (name, value) = guesses.find(|(name, _)| is_named(name))?;
    Some(format!(
        "the code does not accept {name}={value}, which testwright set because the code needs the variable: pass --env \
         {name}=VALUE with a valid value"
    ))
}
