//! Judgements in the words around a piece of code: whether it shows what happens, or what should happen.

use testwright_sandboxes::Pattern;

use super::expected_exceptions::expected_exceptions;
use super::marks::{flat, sentences};

/// Whether the issue describes an output as right, wrong or expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Polarity {
    /// The issue does not say clearly which of these it is.
    #[default]
    Unknown,
    /// The output is right.
    Good,
    /// The issue complains about this output.
    Bad,
    /// The output is expected, but does not occur.
    Expected,
}

static GOOD: Pattern = Pattern::new(
    r"(?i)\b(?:works? (?:fine|well|correctly|as expected|ok|as intended|properly|just fine)|this works|works\b[^.]{0,20}:?$|as (?:you might )?expect(?:ed)?|is correct\b|\b(?:true|right|correct) (?:value|result|answer)\b|correctly|sensible|expected behaviou?r\.?$|result is expected|good:?$|properly|if you do not|unlike|whereas|as it should)",
);
static BAD: Pattern = Pattern::new(
    r"(?i)\b(?:but\b|however|instead\b|wrong|incorrect(?:ly)?|(?:is )?not correct|bug\b|bad:?$|actual(?:ly)?\b|currently\b|unexpected|fails?\b|errors?\b|raises?\b|crash(?:es)?|broken|strange|weird|odd\b|does(?:n'?t| not) work|should(?:n'?t| not)|no longer|misbehav|inconsisten|buggy|gives? the following error|unfortunately|to reproduce|problem|ignor(?:es|ed|ing)|drops?|loses|lost|invalid|inequivalent|notice (?:how|that)|note how)",
);
static EXPECTED: Pattern = Pattern::new(
    r"(?i)(?:\b(?:correct|expected|desired|right|proper|wanted|intended|new) (?:output|result|results|answer|behaviou?r|value|code|one)\b|\bshould (?:be|have been|give|return|output|print|produce|look|yield|show|evaluate|read|become)\b|\b(?:would|i|to) expect(?:ed)?\b|\bexpected:?$|\bexpected to\b|\bi'd like\b|\bideally\b|\bi want\b|\bwould like\b)",
);
static NOT_EXPECTED: Pattern = Pattern::new(
    r"(?i)(?:\bnot (?:the )?expected|\bunexpected|\bas expected|instead of the expected)",
);

/// Returns the stance of the words before a block, from their last sentence.
pub fn stance_before(heading: &str, prose: &str) -> Polarity {
    static EXPECTED_SECTION: Pattern = Pattern::new("expected|desired|expect to");
    static ACTUAL_SECTION: Pattern =
        Pattern::new("actual|current|what happened|bug|reproduce|problem");
    let last = last_sentence(prose);
    let stance = classify_words(&last);
    if stance != Polarity::Unknown {
        return stance;
    }
    if EXPECTED_SECTION.is_match(heading) {
        return Polarity::Expected;
    }
    match ACTUAL_SECTION.is_match(heading) {
        true => Polarity::Bad,
        false => Polarity::Unknown,
    }
}

/// Returns the stance of the words after an output, from their first sentence if it is about the output.
pub fn stance_after(prose: &str) -> Polarity {
    static POINTS_BACK: Pattern = Pattern::new(
        r"(?i)^(?:(?:and |so |but |clearly,? )?(?:this|that|the (?:above|last|output|result|answer)|which|it)\b|note\b|instead|wrong|i (?:would )?expect|suddenly|here|is\b)",
    );
    let flat = flat(prose);
    let first = flat.split_inclusive(['.', '?', '!']).next();
    let first = first.unwrap_or_default().trim();
    // A consequence means that something is wrong, but not that the last output is.
    static FOLLOWS: Pattern = Pattern::new(
        r"(?i)^(?:and |so )?(?:this|that|which|it) (?:is |was |also |then |can |may |will )*(?:caus|lead|result(?:s|ed|ing)? in (?:an? )?(?:error|exception|fail)|break|prevent|affect|mean|happen|came|comes|seems? to be (?:caused|because|due)|because|due)",
    );
    if !POINTS_BACK.is_match(first) || FOLLOWS.is_match(first) {
        return Polarity::Unknown;
    }
    match classify_words(first) {
        // "This should be 3" means that the shown output is wrong.
        Polarity::Expected => Polarity::Bad,
        other => other,
    }
}

/// Returns whether only a "but" leads to the block: one of two outputs is wrong, but the words do not say
/// which.
pub fn bare_contrast(prose: &str) -> bool {
    static BUT: Pattern = Pattern::new(r"(?i)^\W*(?:but|however|while|whereas|yet)\W*$");
    BUT.is_match(&last_sentence(prose))
}

/// Returns the stance of one remark or sentence.
pub fn classify_words(words: &str) -> Polarity {
    if EXPECTED.is_match(words) && !NOT_EXPECTED.is_match(words) {
        return Polarity::Expected;
    }
    if BAD.is_match(words) {
        return Polarity::Bad;
    }
    if GOOD.is_match(words) {
        return Polarity::Good;
    }
    Polarity::Unknown
}

/// Returns whether the issue reports a fault rather than asking for a feature.
pub fn reports_a_fault(title: &str, prose: &str) -> bool {
    static WISH: Pattern = Pattern::new(
        r"(?i)^(?:\W*(?:feature|enhancement|request|rfc|proposal)\b|(?:please )?(?:add|allow|support|implement|make|use|rewrite|provide|enable|raise|show|extend|deprecate|consider|improve|introduce|expose)\b)",
    );
    static LACK: Pattern = Pattern::new(
        r"(?i)\b(?:loses?|losing|dropp?(?:ed|ing)|missing|misses|wrongly|failures?|failing|break(?:s|ing)?|invalidly|inequivalent|not|cannot|can'?t|never|without|instead of|misinterpret\w*|misplac\w*|swallow\w*|overwrit\w+|mangl\w+|duplicat\w+|forgets?|remov(?:es|ing)|reus(?:es|ing)|confus(?:es|ed|ing)|depends on|differs?|different|regression|seems? to|cast(?:s|ing)|coerc(?:es|ing)|mutat(?:es|ing)|corrupt\w*)\b|n't\b",
    );
    let is_bad = |words: &str| classify_words(words) == Polarity::Bad;
    prose.lines().any(is_bad) || is_bad(title) || (LACK.is_match(title) && !WISH.is_match(title))
}

/// Returns whether the issue is about the text of a message, not about whether there is one.
pub fn messages_only(prose: &str) -> bool {
    static WORDS: Pattern = Pattern::new(
        r"(?i)(?:misleading|confusing|unhelpful|unclear|better|improve[ds]?|wording of|more (?:helpful|informative|useful|descriptive)|clearer|friendlier|useless|cryptic|obscure|uninformative)[^.\n]{0,60}(?:message|error|exception|traceback)|(?:message|error|exception|traceback)[^.\n]{0,40}(?:is|are|gives?|being) (?:misleading|confusing|unhelpful|unclear|cryptic|obscure|wrong|useless)",
    );
    static ASIDE: Pattern = Pattern::new(
        r"(?i)^\W*(?:also|additionally|besides|by the way|btw|as an aside|on a side note|furthermore)\b",
    );
    let mut paragraphs = prose.split("\n\n").map(flat);
    paragraphs.any(|flat| sentences(&flat).any(|s| WORDS.is_match(s) && !ASIDE.is_match(s)))
}

/// Returns exceptions that the issue asks for: "should raise a `ValueError`".
pub fn wanted_exceptions(prose: &str) -> Vec<String> {
    static WANTED: Pattern = Pattern::new(
        r"(?i)(?:should|must|ought to|would expect|expected?(?: to)?|to be helpful|would be (?:helpful|better|nice|good) (?:if|to)|needs? to|instead of)\b(?-i:[^.\n]{0,60}?)\b(?:rais(?:e|es|ed|ing)|throw[ns]?|get|fail(?:s)? with|see)\b[^.\n`]{0,25}`{0,2}((?:[A-Za-z_]\w*\.)*\b(?-i:[A-Z]\w*(?:Error|Exception|Warning)))`{0,2}",
    );
    static PASSIVE: Pattern = Pattern::new(
        r"(?i)`{0,2}((?:[A-Za-z_]\w*\.)*\b(?-i:[A-Z]\w*(?:Error|Exception)))`{0,2} (?:should be|must be|was|were|to be|ought to be|being) (?:raised|thrown)",
    );
    static NEGATED: Pattern = Pattern::new(
        r"(?i)(?:not|never|n't|without|rather than|instead of|avoid)\s+(?:\w+\s+){0,3}(?:rais|throw|get|fail)",
    );
    let flat = flat(prose);
    let captures = sentences(&flat)
        .filter(|sentence| !NEGATED.is_match(sentence))
        .flat_map(|sentence| {
            [
                WANTED.captures_iter(sentence),
                PASSIVE.captures_iter(sentence),
            ]
        })
        .flatten();
    let expected = expected_exceptions(prose).into_iter();
    let names = captures.map(|captures| captures[1].to_owned());
    let mut all: Vec<String> = Vec::new();
    for name in names.chain(expected.filter_map(|expected| expected.exception)) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

fn last_sentence(prose: &str) -> String {
    let paragraph = prose.trim().rsplit("\n\n").next().unwrap_or("");
    let flat = flat(paragraph);
    let last = sentences(&flat).filter(|s| !s.is_empty()).last();
    last.unwrap_or_default().to_owned()
}
