//! Calls of kernels.

use crate::{
    graph::{Graph, HostIndex, Op, Tensor},
    kernels::Executable,
    types::TensorType,
};

/// The attribute with the numbers of operands of each kind.
const SEGMENTS: &str = "operandSegmentSizes";

/// The attribute with the operand that each result overwrites, or -1.
const TIED: &str = "tied_operands";

/// Returns the attribute for a dispatch with so many operands of each kind.
fn segments(workload: usize, arguments: usize, of_operands: usize, of_results: usize) -> String {
    format!("array<i32: {workload}, {arguments}, {of_operands}, {of_results}>")
}

/// Returns which operands results overwrite: `made` ones from `places` on, or none, then those of the executable.
fn tied(executable: &Executable, made: usize, places: Option<usize>) -> String {
    let of_made =
        (0..made).map(|index| places.map_or_else(|| "-1".into(), |first| (first + index).to_string()));
    let all = of_made.chain(executable.overwritten().map(|index| index.to_string()));
    format!("[{}]", all.map(|index| format!("{index} : index")).collect::<Vec<_>>().join(", "))
}

/// The operands of a GPU's dispatch before those of the kernel: the number of workgroups.
const GPU_WORKLOAD: usize = 1;

/// Returns the operands that a dispatch of a GPU's kernel overwrites.
pub(crate) fn overwritten_operands(op: &Op, executable: &Executable) -> Vec<Tensor> {
    executable.overwritten().map(|index| op.operands[GPU_WORKLOAD + index]).collect()
}

/// Makes a kernel write the results that it makes over `places`, values of their types. It may have no dynamic tensors.
pub(crate) fn set_places(op: &mut Op, executable: &Executable, places: &[Tensor]) {
    let first = executable.operand_count();
    let at = GPU_WORKLOAD + first;
    op.operands.splice(at..at, places.iter().copied());
    let arguments = op.operands.len() - GPU_WORKLOAD;
    for (name, value) in &mut op.attributes {
        match &**name {
            SEGMENTS => *value = segments(GPU_WORKLOAD, arguments, 0, 0),
            TIED => *value = tied(executable, places.len(), Some(first)),
            _ => {}
        }
    }
}

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
        let workload =
            if executable.is_gpu() { vec![self.host_constant(executable.items())] } else { vec![] };
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
        let segments = segments(workload.len(), arguments, of_operands.len(), of_results.len());
        all.extend(of_operands.into_iter().chain(of_results));
        all.splice(0..0, workload);
        let made = results.len() - overwritten.len();
        let attributes = vec![
            ("entry_points", format!("[@{}::@{}]", executable.container(), executable.entry())),
            (SEGMENTS, segments),
            (TIED, tied(executable, made, None)),
        ];
        let results = results.into_iter().map(Into::into).collect();
        let results = self.op_with_regions(OP, &all, attributes, vec![], results);
        if !Self::poisoned(&results) {
            self.set_kernel(executable.symbol(), executable.cost(operands));
        }
        for (&result, &operand) in results.iter().skip(made).zip(&overwritten) {
            self.set_extent(result, operand);
        }
        results
    }
}
