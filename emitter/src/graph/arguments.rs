//! Arguments of a function.

use safetensors::Dtype;

use super::{Graph, HostIndex, Tensor};
use crate::types::{DYNAMIC, HostType, TensorType, ValueType};

impl Graph {
    /// Adds a tensor argument to the function.
    pub fn argument(&mut self, dtype: Dtype, shape: &[usize]) -> Tensor {
        let argument = self.value(TensorType::new(dtype, shape));
        self.regions[0].arguments.push(argument);
        self.note_argument(argument);
        argument
    }

    /// Adds a tensor argument that the function overwrites, `[…, shape]`. Its first dimension is known when the function runs.
    pub(crate) fn overwritten_argument(&mut self, dtype: Dtype, shape: &[usize]) -> Tensor {
        let argument = self.consumed_argument(dtype, &[&[DYNAMIC], shape].concat());
        let zero = self.host_constant(0);
        let index = vec![ValueType::Host(HostType::Index)];
        let extent = self.op_with_regions("tensor.dim", &[argument, zero], vec![], vec![], index)[0];
        self.extents.insert(argument.index(), HostIndex(extent));
        argument
    }

    /// Adds a tensor argument whose memory kernels of the function write to.
    pub(crate) fn consumed_argument(&mut self, dtype: Dtype, shape: &[usize]) -> Tensor {
        let argument = self.argument(dtype, shape);
        // The caller passes the tensor on, so that it is written in place.
        self.set_argument_attribute("iree.abi.consume");
        argument
    }

    /// Gives the last argument an attribute.
    pub(crate) fn set_argument_attribute(&mut self, attribute: &str) {
        let last = self.regions[0].arguments.len().saturating_sub(1);
        self.argument_attributes.insert(last, format!("{{{attribute}}}"));
    }

    /// Returns the first dimension of a tensor, if it is dynamic.
    pub(crate) fn extent(&self, tensor: Tensor) -> Option<HostIndex> {
        self.extents.get(&tensor.index()).copied()
    }

    /// Remembers that `tensor` has the first dimension of `like`.
    pub(crate) fn set_extent(&mut self, tensor: Tensor, like: Tensor) {
        if let Some(extent) = self.extent(like) {
            self.extents.insert(tensor.index(), extent);
        }
    }

    /// Adds an argument that is an `i32` on the host.
    pub fn host_argument(&mut self) -> HostIndex {
        let argument = self.value(ValueType::Host(HostType::I32));
        self.regions[0].arguments.push(argument);
        let index = ValueType::Host(HostType::Index);
        HostIndex(self.op_with_regions("arith.index_cast", &[argument], vec![], vec![], vec![index])[0])
    }
}
