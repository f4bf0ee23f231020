//! Values on the command line: what is expected of one, and what to do when it is another.

/// A parser of numbers. Whether they mean anything is for those who know.
pub(crate) fn number(
    expected: &'static str,
    hint: &'static str,
) -> impl Fn(&str) -> Result<f32, String> + Clone {
    move |text| text.parse().map_err(|_| format!("expected a number, {expected}\nhint: {hint}"))
}

/// A text with something in it.
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
    fn numbers() {
        let share = number("0 to 1", "1 is all");
        assert_eq!(share("0.5"), Ok(0.5));
        assert_eq!(share("7"), Ok(7.0), "out of range, but a number");
        assert_eq!(share("a half").unwrap_err(), "expected a number, 0 to 1\nhint: 1 is all");
    }
}
