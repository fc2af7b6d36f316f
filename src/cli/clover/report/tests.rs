use testwright_evals::clover::Budget;
use testwright_evals::clover::answer::Form;
use testwright_evals::clover::evaluation::{AnswerClass, Grade};

use super::*;

#[test]
fn rows_name_the_form_of_answers() {
    let grade = |form| Grade {
        problem: "p".to_owned(),
        task: Task::Assertion,
        system: "single-call@m".to_owned(),
        budget: Budget::ProblemOnly,
        form,
        class: AnswerClass::Run,
        exact: true,
        executed: true,
        success: true,
        reason: String::new(),
    };
    let grades = [Form::Assertion, Form::Operand].map(grade);
    let report = CloverReport::from_grades(&grades, &BTreeMap::new(), Vec::new());
    let text = table(&report);
    assert!(
        text.contains("\nsingle-call@m (operand alone)  po "),
        "{text}"
    );
    assert!(text.contains("\nsingle-call@m        "), "{text}");
}
