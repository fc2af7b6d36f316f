//! Statements in prose, such as "`f(1)` gives `2` instead of `3`".

use testwright_sandboxes::Pattern;

use super::expected_exceptions::{ExpectedException, expected_in, is_exception_name};
use super::marks::{flat, marked, plain, sentences, unlabelled};
use super::prose::{Polarity, classify_words};

/// The values stated in one sentence.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Claim {
    /// Expression; `None` if the sentence is about the code before it.
    pub expression: Option<String>,
    /// Value that it should have.
    pub right: Option<String>,
    /// Expected values of the following calls: "I expect `1` and `2`".
    pub further: Vec<String>,
    /// Wrong value that it has.
    pub wrong: Option<String>,
    /// Text that its output should contain.
    pub part: Option<String>,
    /// Value that it has, rightly or not.
    pub shown: Option<String>,
    /// Opinion of the output that the sentence expresses.
    pub stance: Polarity,
    /// The sentence.
    pub sentence: String,
}

/// Replacement for a label and a literal without quotes.
const QUOTED: &str = "$1`$2`$3";

/// Returns the values stated in the prose, sentence by sentence.
pub fn claims(prose: &str) -> Vec<Claim> {
    // A literal after one of these words is a value.
    static UNQUOTED: Pattern = Pattern::new(
        r#"(?i)\b((?:expect(?:ed)?|actual|got)(?: (?:output|result|value))?(?: is| was)?:? )(-?\d+(?:\.\d+)?|'[^'\n]*'|"[^"\n]*"|\[(?:['"\d(\[{-][^\n]*?)?\]|\{(?:['"\d(-][^\n]*?)?\})([.!;]?(?:\s*\n\s*(?:\n|(?-i:[A-Z*-]))|\s*$)|[.!;]\s|,? (?:but|instead)\b)"#,
    );
    // A match may end with the first letter of the next line, so a second pass matches that line.
    let quoted = UNQUOTED.replace_all(prose, QUOTED);
    let (text, codes) = marked(&UNQUOTED.replace_all(&quoted, QUOTED));
    let text = unlabelled(&text);
    let paragraphs: Vec<String> = text.split("\n\n").map(flat).collect();
    let mut all = Vec::new();
    for sentence in paragraphs.iter().flat_map(|flat| sentences(flat)) {
        let clauses = clauses(sentence);
        let mut sentence_claims: Vec<Claim> =
            clauses.iter().filter_map(|c| claim(c, &codes)).collect();
        // In "this gives 1, but that gives 2", if one is right, the other is wrong.
        if let [first, second] = sentence_claims.as_mut_slice() {
            match (first.stance, second.stance) {
                (Polarity::Good, Polarity::Unknown) => second.stance = Polarity::Bad,
                (Polarity::Unknown, Polarity::Good) => first.stance = Polarity::Bad,
                _ => {}
            }
        }
        all.append(&mut sentence_claims);
    }
    all
}

/// Returns the values that continue a list; `None` if they are alternatives.
fn further_values(mut rest: &str, codes: &[String]) -> Option<Vec<String>> {
    static NEXT: Pattern = Pattern::new(r"^(,? and|,? or|,) ⟦(\d+)⟧");
    let (mut values, mut is_complete) = (Vec::new(), false);
    while let Some(next) = NEXT.captures(rest) {
        if next[1].ends_with("or") {
            return None;
        }
        is_complete = next[1].ends_with("and");
        values.push(codes.get(next[2].parse::<usize>().ok()?)?.clone());
        rest = &rest[next[0].len()..];
    }
    // In "I expected `1`, `2` came", the comma does not continue a list.
    values.truncate(if is_complete { values.len() } else { 0 });
    Some(values)
}

/// Splits a sentence with two independent statements.
fn clauses(sentence: &str) -> Vec<String> {
    static BUT: Pattern = Pattern::new(r"(?i)[,;]? (?:but|while|whereas|however,?) (⟦)");
    match BUT.captures(sentence) {
        Some(captures) => {
            let (at, second) = (
                captures.get(0).map_or(0, |m| m.start()),
                captures.get(1).map_or(0, |m| m.start()),
            );
            vec![
                sentence[..at].to_owned(),
                format!("But {}", &sentence[second..]),
            ]
        }
        None => vec![sentence.to_owned()],
    }
}

/// Returns whether the code can be a value; a statement cannot.
fn is_value(code: &str) -> bool {
    static STATEMENT: Pattern = Pattern::new(
        r"^(?:(?:return|raise|import|from|def|class|if|elif|else|for|while|with|assert|del|pass|try|except|yield|async|global)\b|@\w|[A-Za-z_][\w.]*(?:\[[^\]]*\])?(?: [-+*/|&]?= ?|[-+*/|&]= ?)[^=])",
    );
    !STATEMENT.is_match(code.trim_start())
}

fn claim(sentence: &str, codes: &[String]) -> Option<Claim> {
    // The sentence is about how to change the source, not about its results.
    static EDITS: Pattern = Pattern::new(
        r"(?i)\bbe (?:changed|replaced|rewritten|renamed|moved|removed|deleted|added|fixed|updated|extended|modified|inserted|solved|resolved)\b|\b(?:chang|replac|rewrit|renam|modify|swap)(?:e|ing)?\b[^.⟦]{0,30}⟦\d+⟧[^.⟦]{0,20} (?:to|with|by|into)\b|\b(?:quick|simple|easy|possible|proposed|suggested|the|a|my) (?:fix|patch)\b|\blines? \d+",
    );
    static HEDGED: Pattern =
        Pattern::new(r"(?i)^\W*(?:maybe|perhaps|possibly)\b|\b(?:i wonder|wondering|not sure)\b");
    if EDITS.is_match(sentence) || HEDGED.is_match(sentence) {
        return None;
    }
    static GIVES: Pattern = Pattern::new(
        r"(?i)⟦(\d+)⟧[^⟦]{0,40}?\b(?:gives?|gave|returns?|returned|yields?|evaluates? to|produces?|results? in|outputs?|prints?|becomes?|simplif(?:y|ies) to|is rendered as|renders as|equals?|(?:the )?(?:value|result|output) is|is|are|was|=>|->|→|==)\b[^⟦]{0,30}?⟦(\d+)⟧",
    );
    static SHOULD: Pattern = Pattern::new(
        r"(?i)⟦(\d+)⟧[^⟦]{0,30}?(?:should|must|ought to|to) (?:\w+ )?(?:be|give|return|yield|evaluate to|produce|output|print|equal|become)\b[^⟦]{0,30}?⟦(\d+)⟧",
    );
    static RIGHT: Pattern = Pattern::new(
        r"(?i)\b(?:expect(?:ed|s|ing)?|should(?:'ve| have| be| return| give| produce| output| print| yield| evaluate)|correct (?:output|result|answer|value)|supposed to|must be)\b[^⟦]{0,60}?⟦(\d+)⟧",
    );
    static CONTAINS: Pattern = Pattern::new(
        r"(?i)\b(?:should|must|ought to|expect(?:ed|s)?\b[^⟦]{0,40}? to) (?:also |still )?(?:contain|include|mention|show|display|say)\b[^⟦]{0,40}?⟦(\d+)⟧",
    );
    static IS_RIGHT: Pattern =
        Pattern::new(r"(?i)⟦(\d+)⟧ is (?:the )?(?:expected|correct|right|what (?:I|one) expect)");
    static WRONG: Pattern = Pattern::new(
        r"(?i)\b(?:but|instead,?|actually|however|currently|wrongly|incorrectly)\b[^⟦]{0,40}?\b(?:gets?|got|gives?|gave|returns?|returned|outputs?|produces?|prints?|is|was|shows?|evaluates? to)\b[^⟦]{0,30}?⟦(\d+)⟧",
    );
    static ACTUAL: Pattern = Pattern::new(
        r"(?i)\b(?:actual|gets?|got|gives?|gave|returns?|returned|outputs?|produces?|prints?|shows?)\b[^⟦]{0,30}?⟦(\d+)⟧[^⟦]{0,20}?(?:\bbut\b|\bexpect|$)",
    );
    static INSTEAD: Pattern =
        Pattern::new(r"(?i)\b(?:instead of|rather than|and not|not)\b[^⟦.]{0,30}?⟦(\d+)⟧");
    let take = |captures: &regex::Captures<'_>, n: usize| -> Option<String> {
        codes
            .get(captures.get(n)?.as_str().parse::<usize>().ok()?)
            .cloned()
    };
    let mut claim = Claim {
        sentence: plain(sentence, codes),
        // A "but" contrasts it with the text before; its own words are more specific.
        stance: match classify_words(sentence.trim_start_matches("But ")) {
            Polarity::Unknown => classify_words(sentence),
            stance => stance,
        },
        ..Claim::default()
    };
    if let Some(captures) = SHOULD.captures(sentence) {
        claim.expression = take(&captures, 1);
        claim.right = take(&captures, 2);
    } else if let Some(captures) = GIVES.captures(sentence).filter(one_statement) {
        claim.expression = take(&captures, 1);
        claim.shown = take(&captures, 2);
    }
    if claim.right.is_none() {
        let captures = IS_RIGHT
            .captures(sentence)
            .or_else(|| RIGHT.captures(sentence));
        let end = captures.as_ref().and_then(|f| f.get(0)).map(|m| m.end());
        claim.right = captures
            .and_then(|f| take(&f, 1))
            .filter(|r| Some(r) != claim.expression.as_ref());
        if claim.right.is_some() && claim.expression.is_none() && !IS_RIGHT.is_match(sentence) {
            claim.further = further_values(&sentence[end.unwrap_or(0)..], codes)?;
        }
    }
    if let Some(captures) = CONTAINS.captures(sentence) {
        claim.part = take(&captures, 1);
        claim.right = claim.right.filter(|r| Some(r) != claim.part.as_ref());
    }
    if let Some(captures) = WRONG.captures(sentence) {
        claim.wrong = take(&captures, 1).filter(|w| Some(w) != claim.expression.as_ref());
    }
    let right_or_part = claim.right.as_ref().or(claim.part.as_ref());
    if let (Some(right), None, None) = (right_or_part, &claim.wrong, &claim.shown) {
        let actual = ACTUAL.captures(sentence).and_then(|f| take(&f, 1));
        claim.wrong = actual.filter(|a| a != right && Some(a) != claim.expression.as_ref());
    }
    if let Some(captures) = INSTEAD.captures(sentence) {
        let other = take(&captures, 1);
        if claim.right.is_some() || claim.part.is_some() {
            claim.wrong = claim.wrong.or(other);
        } else if claim.shown.is_some() || claim.wrong.is_some() {
            claim.wrong = claim.wrong.or(claim.shown.take());
            claim.right = other;
        }
    }
    if claim.right == claim.shown && claim.right.is_some() && claim.wrong.is_none() {
        claim.shown = None;
    }
    drop_raising(&mut claim, sentence, codes);
    let values = [&claim.right, &claim.part, &claim.wrong, &claim.shown];
    let says = values.iter().any(|value| value.is_some());
    let is_statement = |value: &String| !is_value(value);
    if values.into_iter().flatten().any(is_statement) || claim.further.iter().any(is_statement) {
        return None;
    }
    says.then_some(claim)
}

/// Returns whether no other statement starts between the two marks.
fn one_statement(captures: &regex::Captures<'_>) -> bool {
    static OTHER: Pattern =
        Pattern::new(r"(?i)\b(?:but|instead|which|expect\w*|actual|and|or|if|when|for)\b");
    let gap = captures.get(0).map_or("", |m| m.as_str());
    let inner = gap.split('⟧').nth(1).unwrap_or("");
    !OTHER.is_match(inner.split('⟦').next().unwrap_or(""))
}

/// Removes what the sentence expects to raise an exception, because it is not a value.
fn drop_raising(claim: &mut Claim, sentence: &str, codes: &[String]) {
    let expected = expected_in(sentence, codes);
    let raises = |text: &String| {
        let is_named = |e: &ExpectedException| e.code.contains(text) || e.functions.contains(text);
        is_exception_name(text) || expected.iter().any(is_named)
    };
    if expected.is_empty() {
        return;
    }
    if claim.right.as_ref().is_some_and(raises) || claim.further.iter().any(raises) {
        claim.right = None;
        claim.further.clear();
    }
    for value in [&mut claim.part, &mut claim.wrong, &mut claim.shown] {
        if value.as_ref().is_some_and(raises) {
            *value = None;
        }
    }
    if claim.expression.as_ref().is_some_and(raises) {
        claim.right = None;
    }
}
