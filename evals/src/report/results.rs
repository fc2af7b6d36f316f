//! Reads `results.jsonl`: one graded prediction a line. A line that was cut short is never taken for a result.

use std::collections::BTreeMap;
use std::path::Path;

use crate::graded::Graded;

use super::ReportError;

/// Name of the file of results in their folder.
pub const FILE: &str = "results.jsonl";

/// What a folder holds, by prediction set and then by instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    pub graded: Vec<Graded>,
    /// What was odd in the file.
    pub remarks: Vec<String>,
}

/// Reads the results of a folder. The last line of an instance and prediction wins; what cannot be read is told in
/// `remarks`.
pub fn read_results(folder: &Path) -> Result<Results, ReportError> {
    let path = folder.join(FILE);
    let bytes = std::fs::read(&path).map_err(|source| ReportError::Read {
        path: path.clone(),
        source,
    })?;
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Results {
    let mut remarks = Vec::new();
    let mut by_key: BTreeMap<(String, String), Graded> = BTreeMap::new();
    let mut again = 0;
    let ends = bytes.last().is_none_or(|b| *b == b'\n');
    let lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    for (at, line) in lines.iter().enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Graded>(line) {
            Ok(graded) => {
                let key = (graded.prediction.clone(), graded.instance_id.clone());
                again += usize::from(by_key.insert(key, graded).is_some());
            }
            Err(_) if at + 1 == lines.len() && !ends => {
                remarks.push(format!(
                    "the last line of {FILE} is cut short: it is left out"
                ));
            }
            Err(e) => remarks.push(format!(
                "line {} of {FILE} is no result and is left out: {e}",
                at + 1
            )),
        }
    }
    if again > 0 {
        remarks.push(format!(
            "{again} results of {FILE} were replaced by later ones of the same instance and prediction"
        ));
    }
    Results {
        graded: by_key.into_values().collect(),
        remarks,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::report::sample;

    fn line(graded: &Graded) -> String {
        serde_json::to_string(graded).unwrap() + "\n"
    }

    #[test]
    fn a_line_cut_short_is_no_result_and_the_last_of_several_wins() {
        let all = sample::results(&["a"], 4, 1);
        let mut later = all[0].clone();
        later.strict.reason = "later".to_owned();
        let mut text: String = all.iter().map(line).collect();
        text += &line(&later);
        let cut = line(&all[1]);
        for length in 1..cut.len() - 1 {
            let results = parse(format!("{text}{}", &cut[..length]).as_bytes());
            assert_eq!(results.graded.len(), 4);
            let first = results
                .graded
                .iter()
                .find(|g| g.instance_id == later.instance_id);
            assert_eq!(first.unwrap().strict.reason, "later");
            assert_eq!(results.remarks.len(), 2, "{:?}", results.remarks);
        }
        // A whole line without its end is whole.
        let whole = parse(format!("{text}{}", cut.trim_end()).as_bytes());
        assert_eq!(whole.remarks.len(), 1, "{:?}", whole.remarks);
    }

    #[test]
    fn a_broken_line_does_not_hide_the_next() {
        let all = sample::results(&["a"], 2, 1);
        let broken = line(&all[0])[..40].to_owned();
        let mut bytes = format!("{broken}{}", line(&all[1])).into_bytes();
        bytes.extend(b"\xff\xfe\n\n");
        bytes.extend(line(&all[0]).into_bytes());
        let results = parse(&bytes);
        assert_eq!(results.graded.len(), 1);
        assert_eq!(results.graded[0].instance_id, all[0].instance_id);
        assert!(results.remarks[0].starts_with("line 1 of results.jsonl is no result"));
        assert!(results.remarks[1].starts_with("line 2 of results.jsonl"));
        assert_eq!(parse(b""), Results::default());
    }
}
