//! Sizes of grids, blocks and warps.

/// The lanes of a warp.
pub(crate) const LANES: usize = 32;

/// Sizes in x, y and z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dimensions(pub [u32; 3]);

impl Dimensions {
    /// Returns the number of elements.
    #[must_use]
    pub fn count(self) -> usize {
        self.0.iter().map(|size| *size as usize).product()
    }

    /// Returns the index in each dimension of an element.
    pub(super) fn index(self, element: usize) -> [u32; 3] {
        let [x, y, _] = self.0.map(|size| size.max(1) as usize);
        [element % x, element / x % y, element / (x * y)]
            .map(|index| u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// Lanes as bits.
pub(super) type Mask = u32;
