//! Extras in brackets behind the name of a package or the path of a folder: `.[test,docs]`.

/// Splits the extras off: `./core[a, b]` becomes `./core`, and `a` and `b`.
pub(crate) fn split_extras(target: &str) -> (&str, Vec<String>) {
    let (name, rest) = target.split_once('[').unwrap_or((target, ""));
    let inner = rest.split(']').next().unwrap_or(rest);
    let extras = inner.split(',').map(str::trim);
    let extras = extras.filter(|extra| !extra.is_empty());
    (name, extras.map(str::to_owned).collect())
}

/// Adds extras to those that a package or folder has: `.[test]` becomes `.[test,docs]`. Each is listed once.
pub(super) fn with_extras(target: &str, extras: &[impl AsRef<str>]) -> String {
    let (name, mut all) = split_extras(target);
    for extra in extras.iter().map(AsRef::<str>::as_ref) {
        if !all.iter().any(|present| present == extra) {
            all.push(extra.to_owned());
        }
    }
    match all.is_empty() {
        true => name.to_owned(),
        false => format!("{name}[{}]", all.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extras_are_listed_once() {
        assert_eq!(with_extras("./core", &[""; 0]), "./core");
        assert_eq!(with_extras(".[b, a]", &["a", "c", "b", "c"]), ".[b,a,c]");
    }
}
