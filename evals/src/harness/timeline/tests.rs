use super::*;

fn span(part: Activity, from: u64, to: u64) -> Span {
    Span {
        part,
        from: Duration::from_secs(from),
        to: Duration::from_secs(to),
    }
}

#[test]
fn parts_add_up_to_the_total() {
    let spans = [
        span(Activity::Build, 1, 3),
        span(Activity::Old, 4, 8),
        span(Activity::New, 6, 10),
        span(Activity::Waiting, 3, 9),
        span(Activity::Repeats, 10, 11),
    ];
    let seconds = attributed(&spans, Duration::from_secs(12));
    let expected = Seconds {
        build: 2.0,
        golden: 0.0,
        base: 0.0,
        old: 3.0,
        new: 3.0,
        repeats: 1.0,
        waiting: 1.0,
        other: 2.0,
        total: 12.0,
    };
    assert_eq!(seconds, expected);
    assert_eq!(seconds.parts().iter().sum::<f64>(), 12.0);
}
