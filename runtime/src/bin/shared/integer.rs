//! Parsers of integers on the command line, for every program.

use std::{num::IntErrorKind, ops::RangeInclusive};

/// Makes a parser of integers in a range.
pub(crate) fn integer<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
    hint: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let (start, end) = (range.start(), range.end());
        let parsed = text.parse::<u64>();
        let expected = match &parsed {
            Ok(number) if range.contains(number) => match T::try_from(*number) {
                Ok(value) => return Ok(value),
                Err(_) => "a smaller number".into(),
            },
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => format!("at most {end}"),
            _ if *end == u64::MAX => format!("a whole number, {start} or more"),
            _ => format!("a whole number from {start} to {end}"),
        };
        Err(format!("expected {expected}\nhint: {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_in_their_range() {
        let count = integer::<usize>(1..=u64::MAX, "leave it out");
        assert_eq!(count("1"), Ok(1));
        assert_eq!(count("18446744073709551615"), Ok(usize::MAX));
        for text in ["0", "-1", "x", "", "1.5"] {
            assert_eq!(count(text).unwrap_err(), "expected a whole number, 1 or more\nhint: leave it out");
        }
        assert_eq!(
            count("18446744073709551616").unwrap_err(),
            "expected at most 18446744073709551615\nhint: leave it out"
        );
        let id = integer::<u32>(0..=u32::MAX.into(), "h");
        assert_eq!(id("4294967295"), Ok(u32::MAX));
        assert_eq!(id("4294967296").unwrap_err(), "expected a whole number from 0 to 4294967295\nhint: h");
    }
}
