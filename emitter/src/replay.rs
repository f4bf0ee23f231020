//! Copies of recorded ops: regions that are built again, and functions that are called.

use std::collections::HashMap;

use crate::{
    graph::{Function, Graph, Op, Region, Tensor},
    types::ValueType,
};

/// The copies of values so far.
struct Copies<'f> {
    /// The function that the values are of, if it is another one.
    function: Option<&'f Function>,
    copies: HashMap<Tensor, Tensor>,
}

impl Copies<'_> {
    /// Returns the copies of values. What was not copied stays.
    fn of(&self, values: &[Tensor]) -> Vec<Tensor> {
        values.iter().map(|value| self.copies.get(value).copied().unwrap_or(*value)).collect()
    }

    /// Makes new values of the same types.
    fn make(&mut self, g: &mut Graph, values: &[Tensor]) -> Vec<Tensor> {
        let copy = |&value: &Tensor| {
            let copy = match self.function {
                Some(function) => g.value(function.type_of(value).clone()),
                None => g.value_like(value),
            };
            self.copies.insert(value, copy);
            copy
        };
        values.iter().map(copy).collect()
    }

    fn op(&mut self, g: &mut Graph, op: &Op) -> Op {
        let regions = op.regions.iter().map(|region| self.region(g, region)).collect();
        let operands = self.of(&op.operands);
        let results = self.make(g, &op.results);
        Op { operands, regions, results, ..op.clone() }
    }

    fn region(&mut self, g: &mut Graph, region: &Region) -> Region {
        let arguments = self.make(g, &region.arguments);
        let ops = region.ops.iter().map(|op| self.op(g, op)).collect();
        Region { arguments, ops, results: self.of(&region.results) }
    }

    /// Adds the ops of a region, and returns its results.
    fn add(&mut self, g: &mut Graph, region: &Region) -> Vec<Tensor> {
        for op in &region.ops {
            let op = self.op(g, op);
            g.push(op);
        }
        self.of(&region.results)
    }
}

impl Graph {
    /// Adds the ops of a finished function, with `operands` in place of its arguments, and returns its results.
    ///
    /// They become ops of this function, so that gradients go through them.
    pub fn call(&mut self, function: &Function, operands: &[Tensor]) -> Vec<Tensor> {
        let results = function.body.results.len();
        if Self::poisoned(operands) {
            return vec![Self::poison(); results];
        }
        let expected: Vec<_> =
            function.body.arguments.iter().map(|&argument| function.type_of(argument).clone()).collect();
        let found: Vec<_> = operands.iter().map(|&operand| ValueType::from(self.type_of(operand))).collect();
        if found != expected {
            let list =
                |types: &[ValueType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let problem =
                format!("found {}, expected {} for @{}", list(&found), list(&expected), function.name);
            self.fail("func.call", problem);
            return vec![Self::poison(); results];
        }
        self.add_copies(Some(function), &function.body, operands)
    }

    /// Adds the ops of a recorded region again, with `arguments` in place of the block's, and returns its results.
    pub(crate) fn replay(&mut self, region: &Region, arguments: &[Tensor]) -> Vec<Tensor> {
        self.add_copies(None, region, arguments)
    }

    fn add_copies(
        &mut self,
        function: Option<&Function>,
        region: &Region,
        arguments: &[Tensor],
    ) -> Vec<Tensor> {
        let copies = region.arguments.iter().copied().zip(arguments.iter().copied()).collect();
        Copies { function, copies }.add(self, region)
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;
    use crate::module::Module;

    #[test]
    fn a_called_function_becomes_ops_of_the_caller() {
        let mut g = Graph::new();
        let (x, zero) = (g.argument(Dtype::F32, &[3]), g.scalar(0.0, Dtype::F32));
        let sum = g.repeat(2, &[x], |g, _, state| vec![g.sine(state[0])])[0];
        let condition = g.slice(sum, &[0], &[1]);
        let condition = g.reshape(condition, &[]);
        let condition = g.lt(condition, zero);
        let chosen = g.if_else(condition, |g| vec![g.negate(sum)], |_| vec![sum])[0];
        let inner = g.finish("inner", &[chosen, sum]).unwrap();

        let mut g = Graph::new();
        let (_, y) = (g.argument(Dtype::I32, &[]), g.argument(Dtype::F32, &[3]));
        let results = g.call(&inner, &[y]);
        let again = g.call(&inner, &[results[0]]);
        assert_eq!(g.shape(again[1]), [3]);
        let mut module = Module::new("m");
        module.add(g.finish("outer", &again).unwrap());
        let text = module.to_mlir().unwrap();
        assert_eq!(text.matches("stablehlo.while").count(), 2, "{text}");
    }

    #[test]
    fn operands_must_have_the_types_of_the_arguments() {
        let mut g = Graph::new();
        let x = g.argument(Dtype::F32, &[3]);
        let inner = g.finish("inner", &[x]).unwrap();
        let mut g = Graph::new();
        let y = g.argument(Dtype::F32, &[2]);
        let results = g.call(&inner, &[y]);
        assert_eq!(
            g.finish("outer", &results).unwrap_err().to_string(),
            "graph: func.call: found tensor<2xf32>, expected tensor<3xf32> for @inner"
        );
    }
}
