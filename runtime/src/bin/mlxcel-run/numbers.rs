//! Parsers of values on the command line, with their hints.

/// Makes a parser of numbers. Ranges are checked later, where they are known.
pub(crate) fn number(
    expected: &'static str,
    hint: &'static str,
) -> impl Fn(&str) -> Result<f32, String> + Clone {
    move |text| text.parse().map_err(|_| format!("expected a number, {expected}\nhint: {hint}"))
}

/// Parses a stop text, which is not empty.
pub(crate) fn stop_text(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("expected a text of at least one character\nhint: leave it out to stop at no text".into());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_without_a_range() {
        let share = number("0 to 1", "1 is all");
        assert_eq!(share("0.5"), Ok(0.5));
        assert_eq!(share("7"), Ok(7.0), "out of range, but a number");
        assert_eq!(share("a half").unwrap_err(), "expected a number, 0 to 1\nhint: 1 is all");
    }
}
