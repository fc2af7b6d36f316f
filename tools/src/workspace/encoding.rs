//! Text files: UTF-8, and Latin-1 where a coding cookie (PEP 263) says so.

/// The text, or what is wrong, fit to follow the file's name.
pub fn decode(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.contains(&0) {
        return Err("is a binary file".to_owned());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(e) => {
            let bytes = e.as_bytes();
            if is_latin1(bytes) {
                return Ok(bytes.iter().map(|&b| char::from(b)).collect());
            }
            Err(match cookie(bytes) {
                Some(name) => format!("is written in the encoding `{name}`, which cannot be shown"),
                None => format!(
                    "is not UTF-8 text (first bad byte at offset {})",
                    e.utf8_error().valid_up_to()
                ),
            })
        }
    }
}

/// The bytes of `text` in the encoding of `now`, the file's present content.
pub fn encode(text: &str, now: &[u8]) -> Result<Vec<u8>, String> {
    if std::str::from_utf8(now).is_ok() || !is_latin1(now) {
        return Ok(text.as_bytes().to_vec());
    }
    text.chars()
        .map(|c| {
            u8::try_from(u32::from(c))
                .map_err(|_| format!("is written in Latin-1, which has no `{c}`"))
        })
        .collect()
}

fn is_latin1(bytes: &[u8]) -> bool {
    cookie(bytes).is_some_and(|name| {
        let name = name.to_ascii_lowercase().replace('_', "-");
        matches!(
            name.as_str(),
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1"
        ) || name.starts_with("iso-latin-1")
    })
}

fn cookie(bytes: &[u8]) -> Option<String> {
    for line in bytes.split(|&b| b == b'\n').take(2) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start();
        if !line.starts_with('#') {
            continue;
        }
        if let Some(at) = line.find("coding")
            && let Some(rest) = line[at + "coding".len()..].strip_prefix([':', '='])
        {
            let name: String = rest
                .trim_start()
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
                .collect();
            return (!name.is_empty()).then_some(name);
        }
    }
    None
}
