use std::collections::BTreeMap;

use super::*;
use crate::confidence::{GateResult, Signals};

fn refused() -> Outcome {
    Outcome::Refused {
        patch: "p".to_owned(),
        findings: vec!["the test passes".to_owned()],
    }
}

#[test]
fn refused_test_is_withheld_first() {
    // A test of which nothing is known.
    let signals = Signals {
        gate: GateResult::NotFailing,
        values: BTreeMap::new(),
    };
    let accepted = Outcome::Accepted {
        patch: "p".to_owned(),
        evidence: Box::new(Evidence {
            signals: Some(signals),
            ..Evidence::default()
        }),
    };
    assert_eq!(refused().with_minimum(0.0), refused());
    assert_eq!(accepted.clone().with_minimum(0.0), accepted);
    for outcome in [
        refused().with_minimum(0.1),
        accepted.clone().with_minimum(0.6),
    ] {
        assert!(matches!(outcome, Outcome::Withheld { .. }), "{outcome:?}");
        assert_eq!(outcome.patch(), None);
        assert_eq!(outcome.written_patch(), Some("p"));
    }
    let summary = accepted.with_minimum(0.6).summary();
    assert!(summary.starts_with("withheld: the confidence of 0."));
    assert!(
        summary.ends_with(" is below 0.6: no candidate fix was tried on it; no reviewer read it")
    );
    let withheld = refused().with_minimum(0.1);
    assert_eq!(withheld.confidence(), Some(0.0));
    assert_eq!(
        withheld.summary(),
        "withheld: the confidence of 0.00 is below 0.1: the test passes"
    );
}
