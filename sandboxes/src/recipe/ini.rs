//! Parser for `setup.cfg`, `tox.ini` and `pytest.ini`. It covers the subset of Python's configparser that is needed
//! here.

use std::collections::BTreeMap;

#[derive(Debug, Default, Clone)]
pub(super) struct Ini {
    sections: BTreeMap<String, BTreeMap<String, String>>,
}

impl Ini {
    pub(super) fn parse(text: &str) -> Ini {
        let mut ini = Ini::default();
        let mut section = String::new();
        let mut key: Option<String> = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.starts_with('#') || trimmed.starts_with(';') {
                continue;
            }
            let indented = line.starts_with([' ', '\t']);
            if indented && let Some(key) = &key {
                if let Some(value) = ini
                    .sections
                    .entry(section.clone())
                    .or_default()
                    .get_mut(key)
                {
                    value.push('\n');
                    value.push_str(trimmed);
                }
                continue;
            }
            if trimmed.is_empty() {
                continue;
            }
            if let Some(name) = trimmed.strip_prefix('[').and_then(|t| t.split(']').next()) {
                section = name.trim().to_owned();
                key = None;
            } else if let Some(at) = trimmed.find(['=', ':']) {
                let name = trimmed[..at].trim().to_lowercase().replace('-', "_");
                let value = trimmed[at + 1..].trim().to_owned();
                ini.sections
                    .entry(section.clone())
                    .or_default()
                    .insert(name.clone(), value);
                key = Some(name);
            }
        }
        ini
    }

    pub(super) fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.get(section)?.get(key).map(String::as_str)
    }

    pub(super) fn keys(&self, section: &str) -> impl Iterator<Item = &str> {
        self.sections
            .get(section)
            .into_iter()
            .flat_map(|s| s.keys().map(String::as_str))
    }

    pub(super) fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections.keys().map(String::as_str)
    }

    pub(super) fn has(&self, section: &str) -> bool {
        self.sections.contains_key(section)
    }

    /// Returns the items of a value with one item per line, without comments.
    pub(super) fn list(&self, section: &str, key: &str) -> Vec<String> {
        let Some(value) = self.get(section, key) else {
            return Vec::new();
        };
        value
            .lines()
            .map(|line| line.split(" #").next().unwrap_or(line).trim())
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect()
    }

    /// Returns a list of requirements of setup.cfg. On a single line, semicolons separate them.
    pub(super) fn requirements(&self, section: &str, key: &str) -> Vec<String> {
        let lines = self.list(section, key);
        let is_single = self
            .get(section, key)
            .is_some_and(|value| !value.contains('\n'));
        match is_single {
            true => {
                let items = lines.iter().flat_map(|line| line.split(';')).map(str::trim);
                let items = items.filter(|item| !item.is_empty());
                items.map(str::to_owned).collect()
            }
            false => lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_separate_requirements_on_one_line() {
        let ini = Ini::parse("[options]\na = x>=1; y;\nb =\n    x; python_version < '3'\n    y\n");
        assert_eq!(ini.requirements("options", "a"), ["x>=1", "y"]);
        assert_eq!(
            ini.requirements("options", "b"),
            ["x; python_version < '3'", "y"]
        );
    }
}
