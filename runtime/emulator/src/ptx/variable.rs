//! Variables as they are declared.

use super::{module::Error, operands::constant};
use crate::types::{DYNAMIC_SHARED, Type};

/// A variable as it is declared.
#[derive(Debug)]
pub(super) struct Variable<'t> {
    pub(super) space: &'t str,
    pub(super) name: String,
    align: usize,
    is_extern: bool,
    pub(super) content: Vec<u8>,
}

impl<'t> Variable<'t> {
    /// Reads `.visible .global .align 4 .u32 x[2] = {1, 2}`.
    pub(super) fn parse(text: &'t str) -> Result<Self, Error> {
        let bad = |problem: &str| Error::new(text.trim(), problem);
        let (declared, values) =
            text.split_once('=').map_or((text, None), |(left, right)| (left, Some(right)));
        let mut align = None;
        let (mut space, mut ty, mut name, mut is_extern) = (None, None, None, false);
        let mut words = declared.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                ".align" => align = words.next().and_then(|word| word.parse().ok()),
                ".extern" => is_extern = true,
                ".global" | ".const" | ".shared" | ".local" | ".param" => space = word.strip_prefix('.'),
                _ if word.starts_with('.') => ty = ty.or(Type::of(&word[1..])),
                _ => name = Some(word),
            }
        }
        let (space, ty) = (
            space.ok_or_else(|| bad("found no state space, expected one"))?,
            ty.ok_or_else(|| bad("found no type, expected one"))?,
        );
        let name = name.ok_or_else(|| bad("found no name, expected one"))?;
        let (name, sizes) = name.split_once('[').unwrap_or((name, ""));
        let count = sizes
            .split(['[', ']'])
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .try_fold(1_usize, |count, size| count.checked_mul(size.parse().ok()?));
        let count = if sizes.starts_with(']') { Some(0) } else { count };
        let count =
            count.filter(|count| *count <= 1 << 28).ok_or_else(|| bad("found no size, expected numbers"))?;
        let mut content = Vec::with_capacity(count * ty.bytes());
        for value in
            values.unwrap_or_default().split(['{', '}', ',']).map(str::trim).filter(|value| !value.is_empty())
        {
            let value =
                constant(value).ok_or_else(|| bad("found a value that is no number, expected numbers"))?;
            content.extend(&value.to_le_bytes()[..ty.bytes()]);
        }
        content.resize(count * ty.bytes(), 0);
        Ok(Self { space, name: name.to_owned(), align: align.unwrap_or(ty.bytes()), is_extern, content })
    }

    /// Returns its place in shared memory after `used` bytes, and adds it to them. It is aligned as it says and no better: what it does
    /// not say, nobody promises.
    pub(super) fn place_exactly(&self, used: &mut usize) -> u64 {
        let align = self.align.max(1);
        let place = used.next_multiple_of(align);
        if !self.is_extern && place.is_multiple_of(2 * align) {
            *used = place + align;
        }
        self.place(used)
    }

    /// Returns its place after `used` bytes, and adds it to them.
    pub(super) fn place(&self, used: &mut usize) -> u64 {
        if self.is_extern {
            return DYNAMIC_SHARED;
        }
        let place = used.next_multiple_of(self.align.max(1));
        *used = place + self.content.len();
        place as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_places_and_values() {
        let mut used = 3;
        let variable = Variable::parse(".shared .align 16 .b8 x[3][4]").unwrap();
        assert_eq!((variable.place(&mut used), used, variable.name.as_str()), (16, 28, "x"));
        let variable = Variable::parse(".visible .global .align 4 .u32 y[3] = {1, 0x102}").unwrap();
        assert_eq!(variable.content, [1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        let variable = Variable::parse(".extern .shared .align 16 .b8 z[]").unwrap();
        assert_eq!((variable.place(&mut used), used), (DYNAMIC_SHARED, 28));
        let variable = Variable::parse(".shared .align 4 .b8 x[8]").unwrap();
        let mut used = 0;
        let places = [(); 3].map(|()| variable.place_exactly(&mut used));
        assert_eq!((places, used), ([4, 12, 20], 28));
        let error = Variable::parse(".global .b8 x[n]").unwrap_err().to_string();
        assert_eq!(error, ".global .b8 x[n]: found no size, expected numbers");
    }
}
