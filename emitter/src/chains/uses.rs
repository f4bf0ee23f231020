//! Which ops of a function use a tensor.

use std::collections::{HashMap, HashSet};

use crate::graph::{Op, Tensor};

/// Returns whether an op only names its operand's elements in another way.
pub(super) fn is_reshape(op: &Op) -> bool {
    op.name == "stablehlo.reshape"
}

/// Returns whether an op may be left out if nothing uses its result. Kernels read columns where they are, so that a slice often
/// has no use.
pub(super) fn is_view(op: &Op) -> bool {
    is_reshape(op) || op.name == "stablehlo.slice"
}

/// Returns every tensor that an op uses, in its regions too.
pub(super) fn used_by(op: &Op) -> Vec<Tensor> {
    let mut used = op.operands.clone();
    for region in &op.regions {
        used.extend(&region.results);
        used.extend(region.ops.iter().flat_map(used_by));
    }
    used
}

/// The uses of a function's tensors.
pub(super) struct Uses {
    /// Tensors that generated code uses, or that the function returns.
    generated: HashSet<Tensor>,
    /// The indices of the ops that call kernels with a tensor.
    kernels: HashMap<Tensor, Vec<usize>>,
    /// Views of a tensor.
    views: HashMap<Tensor, Vec<Tensor>>,
    /// The tensor that a reshape is one of.
    reshaped: HashMap<Tensor, Tensor>,
    /// Constants that equal an earlier one, which they can be replaced by.
    equal: HashMap<Tensor, Tensor>,
}

impl Uses {
    /// Collects the uses in a function's body, which returns `results`.
    pub(super) fn of(ops: &[Op], results: &[Tensor]) -> Self {
        let mut uses = Self {
            generated: results.iter().copied().collect(),
            kernels: HashMap::new(),
            views: HashMap::new(),
            reshaped: HashMap::new(),
            equal: HashMap::new(),
        };
        let mut constants = HashMap::new();
        for (index, op) in ops.iter().enumerate() {
            if op.kernel.is_some() {
                for &operand in &op.operands {
                    uses.kernels.entry(operand).or_default().push(index);
                }
            } else if is_view(op) {
                uses.views.entry(op.operands[0]).or_default().push(op.results[0]);
                if is_reshape(op) {
                    uses.reshaped.insert(op.results[0], op.operands[0]);
                }
            } else {
                uses.generated.extend(used_by(op));
            }
            if let ("stablehlo.constant", [(_, value)]) = (&*op.name, op.attributes.as_slice()) {
                let first = *constants.entry(value).or_insert(op.results[0]);
                uses.equal.insert(op.results[0], first);
            }
        }
        uses
    }

    /// Returns whether anything but the kernels that are `inside` uses a tensor.
    pub(super) fn is_used_outside(&self, tensor: Tensor, inside: &impl Fn(usize) -> bool) -> bool {
        let by_kernel = |indices: &Vec<usize>| indices.iter().any(|&index| !inside(index));
        let by_view = |views: &Vec<Tensor>| views.iter().any(|&view| self.is_used_outside(view, inside));
        self.generated.contains(&tensor)
            || self.kernels.get(&tensor).is_some_and(by_kernel)
            || self.views.get(&tensor).is_some_and(by_view)
    }

    /// Returns the first constant that equals a tensor, or the tensor.
    pub(super) fn first_equal(&self, tensor: Tensor) -> Tensor {
        self.equal.get(&tensor).copied().unwrap_or(tensor)
    }

    /// Returns the tensor itself, then those that it is a reshape of.
    pub(super) fn sources(&self, tensor: Tensor) -> impl Iterator<Item = Tensor> {
        std::iter::successors(Some(tensor), |tensor| self.reshaped.get(tensor).copied())
    }
}
