//! Tests and assertions that an issue contains.

use super::{candidates_for, lines};
use crate::rule_based::candidates::Expects;
use crate::rule_based::extract::extract;
use crate::rule_based::{functions, test_name};

#[test]
fn test_in_issue_is_named_after_its_call() {
    let issue = extract(
        "t\n```python\nfrom shop import low\ndef test():\n    assert len(low(5)) == 4\n```\n",
    );
    let all = functions::candidates(&issue);
    let function = all[0].function.as_deref().unwrap();
    assert!(
        function.starts_with("def test_low_example():"),
        "{function}"
    );
}

#[test]
fn failing_assert_in_issue_is_kept() {
    let (_, all) = candidates_for(
        "low is off\n```python\nfrom shop import low\nhigh = 5\nassert low(high) == 4   # fails\nassert low(4) == 2\n```\n",
    );
    assert_eq!(
        lines(&all[0]),
        ["from shop import low", "high = 5", "assert low(high) == 4"]
    );
    assert_eq!(all[0].behaviour, test_name::Behaviour::AsWritten);
    assert_eq!(all[0].expects, Expects::Assertion);
}
