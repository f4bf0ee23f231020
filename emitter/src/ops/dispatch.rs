//! Calls of kernels.

use crate::{Graph, HostIndex, Tensor, TensorType, kernels::Executable};

impl Graph {
    /// Runs a kernel on `operands` and `numbers`; gives its results. Called by
    /// [`Module::call`](crate::Module), which adds the executable to the module.
    pub(crate) fn dispatch(
        &mut self,
        executable: &Executable,
        operands: &[Tensor],
        numbers: &[HostIndex],
    ) -> Vec<Tensor> {
        const OP: &str = "flow.dispatch";
        if Self::poisoned(operands) {
            return vec![Self::poison(); executable.results.len()];
        }
        let found: Vec<_> = operands.iter().map(|&operand| self.type_of(operand)).collect();
        if found != executable.operands || numbers.len() != executable.numbers {
            let list =
                |types: &[TensorType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let (function, expected) = (executable.function, list(&executable.operands));
            let problem = format!(
                "found {} and {} numbers, expected {expected} and {} for {function}",
                list(&found),
                numbers.len(),
                executable.numbers
            );
            self.fail(OP, problem);
            return vec![Self::poison(); executable.results.len()];
        }
        let mut all = operands.to_vec();
        if executable.isa.is_gpu() {
            all.extend(numbers.iter().map(|&number| self.host_i32(number)));
            all.extend(executable.sizes.iter().map(|&size| self.host_i32_constant(OP, size)));
        } else {
            all.extend(numbers.iter().map(|number| number.0));
        }
        let untied = vec!["-1 : index"; executable.results.len()].join(", ");
        let attributes = vec![
            ("entry_points", format!("[@{}::@{}]", executable.symbol(), executable.entry())),
            ("operandSegmentSizes", format!("array<i32: 0, {}, 0, 0>", all.len())),
            ("tied_operands", format!("[{untied}]")),
        ];
        let results = executable.results.iter().cloned().map(Into::into).collect();
        self.op_with_regions(OP, &all, attributes, vec![], results)
    }
}
