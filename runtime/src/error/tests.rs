//! Messages have hints.

/// Checks the source, because a list of all variants would have to be kept up to date by hand.
#[test]
fn every_message_has_a_hint() {
    let source = concat!(
        include_str!("../error.rs"),
        include_str!("calibration.rs"),
        include_str!("engine.rs"),
        include_str!("measure.rs"),
        include_str!("program.rs")
    );
    let messages = source.split("#[error(").skip(1).map(|rest| rest.split(")]\n").next());
    let messages: Vec<&str> = messages.map(Option::unwrap_or_default).collect();
    assert!(messages.len() > 30, "found {} messages", messages.len());
    let without: Vec<&&str> =
        messages.iter().filter(|text| !text.contains("hint: ") && !text.contains("_HINT}")).collect();
    // The reason of a refused text has a hint.
    let text = r#""text {}: {reason}", index + 1"#;
    let transparent = [&"transparent"; 5].into_iter();
    assert_eq!(without, transparent.chain([&text, &"\"interrupted\""]).collect::<Vec<_>>());
}
