use super::*;

fn double(frames: &[(Place, &str)]) -> bool {
    let frame = |(place, function): &(Place, &str)| Frame {
        file: match place {
            Place::Test => "tests/test_a.py".to_owned(),
            _ => "pkg/core.py".to_owned(),
        },
        line: 1,
        function: (*function).to_owned(),
        code: String::new(),
        place: *place,
    };
    let failure = Failure {
        phase: Phase::Call,
        class: FailureClass::Exception,
        exception: "ValueError".to_owned(),
        message: String::new(),
        frames: frames.iter().map(frame).collect(),
        missing_name: None,
    };
    failure.raised_by_test_double().is_some()
}

#[test]
fn decorated_test_body_is_not_a_stand_in() {
    let (test, code) = (Place::Test, Place::Source);
    let frames = [
        (test, "accept.<locals>.test_a"),
        (code, "wrapped_test"),
        (test, "test_a"),
    ];
    assert!(!double(&frames));
    let inner = [
        (test, "test_a"),
        (test, "inner"),
        (code, "wrapped_test"),
        (test, "test_a.<locals>.inner"),
    ];
    assert!(!double(&inner));
    assert!(double(&[
        (test, "test_a"),
        (code, "fetch"),
        (test, "FakeClient.get")
    ]));
    // The code called the stand-in before.
    let again = [
        (test, "test_a"),
        (code, "fetch"),
        (test, "FakeClient.get"),
        (code, "fetch"),
        (test, "FakeClient.get"),
    ];
    assert!(double(&again));
}
