//! Windows that move over tensors.

use super::attributes::{i64_array, padding_pairs};
use crate::mlir::attributes::{integers, sizes};

/// A window and how it moves, with a number for each dimension of the tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The elements of the window.
    pub sizes: Vec<usize>,
    /// The steps of the window.
    pub strides: Vec<usize>,
    /// The steps between elements of the tensor, with neutral elements between them.
    pub base_dilation: Vec<usize>,
    /// The steps between elements of the window.
    pub dilation: Vec<usize>,
    /// The neutral elements before and after the tensor. A negative number cuts elements away.
    pub padding: Vec<(i64, i64)>,
}

impl Window {
    /// Returns a window that moves in steps of 1, without padding.
    #[must_use]
    pub fn new(sizes: &[usize]) -> Self {
        let ones = vec![1; sizes.len()];
        Self {
            sizes: sizes.to_vec(),
            strides: ones.clone(),
            base_dilation: ones.clone(),
            dilation: ones,
            padding: vec![(0, 0); sizes.len()],
        }
    }

    /// Returns a window whose steps are its sizes, so that windows do not overlap.
    #[must_use]
    pub fn tiles(sizes: &[usize]) -> Self {
        Self { strides: sizes.to_vec(), ..Self::new(sizes) }
    }

    /// Reads a window from the attributes of its op. Absent attributes have the defaults of the specification.
    pub(crate) fn read<'a>(attribute: impl Fn(&str) -> &'a str) -> Self {
        let window = Self::new(&sizes(attribute("window_dimensions")).unwrap_or_default());
        let of = |name, default| sizes(attribute(name)).filter(|sizes| !sizes.is_empty()).unwrap_or(default);
        Self {
            strides: of("window_strides", window.strides),
            base_dilation: of("base_dilations", window.base_dilation),
            dilation: of("window_dilations", window.dilation),
            padding: read_padding(attribute("padding"), window.sizes.len()),
            sizes: window.sizes,
        }
    }

    /// Returns the attributes of an op with this window.
    pub(crate) fn attributes(&self) -> Vec<(&'static str, String)> {
        let Self { sizes, strides, base_dilation, dilation, padding } = self;
        vec![
            ("window_dimensions", i64_array(sizes)),
            ("window_strides", i64_array(strides)),
            ("base_dilations", i64_array(base_dilation)),
            ("window_dilations", i64_array(dilation)),
            ("padding", padding_pairs(padding)),
        ]
    }

    /// Returns the number of windows in each dimension of `shape`, or `None` if the window does not fit its rank.
    pub(crate) fn counts(&self, shape: &[usize]) -> Option<Vec<usize>> {
        let Self { sizes, strides, base_dilation, dilation, padding } = self;
        let lengths = [sizes.len(), strides.len(), base_dilation.len(), dilation.len(), padding.len()];
        let steps = [sizes, strides, base_dilation, dilation];
        if lengths != [shape.len(); 5] || steps.into_iter().flatten().any(|&step| step == 0) {
            return None;
        }
        let count = |d: usize| {
            let base = Steps { size: shape[d], dilation: base_dilation[d] };
            let window = Steps { size: sizes[d], dilation: dilation[d] };
            window_count(base, window, strides[d], padding[d])
        };
        Some((0..shape.len()).map(count).collect())
    }
}

/// Reads the padding of a window. One number is that of all sides, and none is zero.
pub(super) fn read_padding(text: &str, rank: usize) -> Vec<(i64, i64)> {
    match *integers(text).unwrap_or_default().as_slice() {
        [] => vec![(0, 0); rank],
        [all] => vec![(all, all); rank],
        ref sides => sides.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
    }
}

/// Elements with gaps between them.
#[derive(Clone, Copy)]
pub(crate) struct Steps {
    /// The number of elements.
    pub(crate) size: usize,
    /// The distance between two.
    pub(crate) dilation: usize,
}

impl Steps {
    /// Returns how many places it covers.
    pub(crate) fn extent(self) -> usize {
        if self.size == 0 { 0 } else { (self.size - 1).saturating_mul(self.dilation).saturating_add(1) }
    }

    /// Returns how many places it covers, as paddings count.
    pub(crate) fn signed_extent(self) -> i64 {
        i64::try_from(self.extent()).unwrap_or(i64::MAX)
    }
}

/// Returns how many windows fit into a padded dimension.
pub(super) fn window_count(base: Steps, window: Steps, stride: usize, (low, high): (i64, i64)) -> usize {
    let padded = base.signed_extent().saturating_add(low).saturating_add(high);
    let room = padded.saturating_sub(window.signed_extent());
    usize::try_from(room).map_or(0, |room| room / stride + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_fit_are_counted() {
        assert_eq!(Window::new(&[5]).counts(&[4]), Some(vec![0]));
        let strided = Window { strides: vec![2], padding: vec![(1, 1)], ..Window::new(&[3]) };
        assert_eq!(strided.counts(&[7]), Some(vec![4]));
        assert_eq!(strided.counts(&[7, 7]), None);
    }
}
