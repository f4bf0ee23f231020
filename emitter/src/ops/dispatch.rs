//! Calls of kernels.

use crate::{
    graph::{Graph, HostIndex, Tensor},
    kernels::Executable,
    types::TensorType,
};

impl Graph {
    /// Runs a kernel on `operands` and `numbers` and returns its results, then the operands that it overwrites.
    ///
    /// [`Module::call`](crate::module::Module::call) calls this and adds the executable to the module.
    pub(crate) fn dispatch(
        &mut self,
        executable: &Executable,
        operands: &[Tensor],
        numbers: &[HostIndex],
    ) -> Vec<Tensor> {
        const OP: &str = "flow.dispatch";
        let results = executable.result_types();
        if Self::poisoned(operands) {
            return vec![Self::poison(); results.len()];
        }
        let found: Vec<_> = operands.iter().map(|&operand| self.type_of(operand)).collect();
        let expected = executable.operand_types();
        if found != expected || numbers.len() != executable.number_count() {
            let list =
                |types: &[TensorType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let problem = format!(
                "found {} and {} numbers, expected {} and {} for {}",
                list(&found),
                numbers.len(),
                list(&expected),
                executable.number_count(),
                executable.function_name()
            );
            self.fail(OP, problem);
            return vec![Self::poison(); results.len()];
        }
        let mut all = operands.to_vec();
        if executable.is_gpu() {
            all.extend(numbers.iter().map(|&number| self.host_i32(number)));
            all.extend(executable.sizes().map(|size| self.host_i32_constant(OP, size)));
        } else {
            all.extend(numbers.iter().map(|number| number.0));
        }
        let arguments = all.len();
        let overwritten: Vec<_> = executable.overwritten().map(|index| operands[index]).collect();
        let extents = |g: &Self, tensors: &[Tensor]| -> Vec<_> {
            tensors.iter().filter_map(|&tensor| Some(g.extent(tensor)?.0)).collect()
        };
        let (of_operands, of_results) = (extents(self, operands), extents(self, &overwritten));
        let segments = format!("array<i32: 0, {arguments}, {}, {}>", of_operands.len(), of_results.len());
        all.extend(of_operands.into_iter().chain(of_results));
        let made = results.len() - overwritten.len();
        let tied = (0..made).map(|_| "-1 : index".to_owned());
        let tied = tied.chain(executable.overwritten().map(|index| format!("{index} : index")));
        let attributes = vec![
            ("entry_points", format!("[@{}::@{}]", executable.container(), executable.entry())),
            ("operandSegmentSizes", segments),
            ("tied_operands", format!("[{}]", tied.collect::<Vec<_>>().join(", "))),
        ];
        let results = results.into_iter().map(Into::into).collect();
        let results = self.op_with_regions(OP, &all, attributes, vec![], results);
        if !Self::poisoned(&results) {
            self.set_kernel(executable.symbol());
        }
        for (&result, &operand) in results.iter().skip(made).zip(&overwritten) {
            self.set_extent(result, operand);
        }
        results
    }
}
