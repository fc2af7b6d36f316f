use super::spdx;

#[test]
fn licences_are_recognized_by_sentences() {
    let bsd = "Redistribution and use in source and binary\n   forms, with or without";
    for (text, id) in [
        (
            "Permission is hereby granted, free of\ncharge, to any person",
            Some("MIT"),
        ),
        (bsd, Some("BSD-2-Clause")),
        (
            &format!("{bsd} … may be used to endorse or promote products"),
            Some("BSD-3-Clause"),
        ),
        (
            "Apache License\n  Version 2.0, January 2004",
            Some("Apache-2.0"),
        ),
        ("Do what you like.", None),
    ] {
        assert_eq!(spdx(text), id, "{text}");
    }
}
