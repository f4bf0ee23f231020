//! Names of arguments and results, and memory that callers give away.

use safetensors::Dtype;

use crate::{
    error::Error,
    graph::{Function, Graph, Tensor},
};

impl Graph {
    /// Adds a tensor argument with a name that callers give it by.
    pub fn named_argument(&mut self, name: impl Into<String>, dtype: Dtype, shape: &[usize]) -> Tensor {
        let argument = self.argument(dtype, shape);
        self.signature.argument_names.insert(argument, name.into());
        argument
    }

    /// Returns `next`, a result that takes the place of `argument` in memory, which callers give away.
    pub fn replaces(&mut self, argument: Tensor, next: Tensor) -> Tensor {
        if Self::poisoned(&[argument, next]) {
            return Self::poison();
        }
        let (old, new) = (self.type_of(argument), self.type_of(next));
        let is_argument = self.open_regions().first().is_some_and(|body| body.arguments.contains(&argument));
        if !is_argument || old != new {
            let expected = "expected an argument of the function and its type";
            return self.fail("func.func", format!("found {new} in place of {old}, {expected}"));
        }
        self.signature.replaced.insert(argument, next);
        next
    }

    /// Gives arguments whose places `results` take the attribute that says so, which is JAX's.
    pub(crate) fn mark_replacements(&mut self, results: &[Tensor]) {
        for (argument, next) in std::mem::take(&mut self.signature.replaced) {
            let arguments = self.open_regions().first().map_or(&[][..], |body| &body.arguments);
            let index = arguments.iter().position(|found| *found == argument);
            let result = results.iter().position(|found| *found == next);
            let (Some(index), Some(result)) = (index, result) else {
                let ty = self.type_of(next);
                self.fail(
                    "func.return",
                    format!("found no {ty} that takes the place of an argument, expected it as a result"),
                );
                return;
            };
            self.argument_attributes.insert(index, format!("{{tf.aliasing_output = {result} : i32}}"));
        }
    }

    /// Finishes the function, which returns `results` with names.
    ///
    /// # Errors
    /// Those of [`Self::finish`].
    pub fn finish_named(
        mut self,
        name: impl Into<String>,
        results: &[(&str, Tensor)],
    ) -> Result<Function, Error> {
        let tensors: Vec<_> = results.iter().map(|&(_, tensor)| tensor).collect();
        self.signature.result_names = results.iter().map(|&(name, _)| name.to_owned()).collect();
        self.finish(name, &tensors)
    }
}

impl Function {
    /// Returns the name of an argument.
    pub(crate) fn argument_name(&self, argument: Tensor) -> Option<&str> {
        self.signature.argument_names.get(&argument).map(String::as_str)
    }

    /// Returns the names of its results, or none.
    pub(crate) fn result_names(&self) -> &[String] {
        &self.signature.result_names
    }

    /// Returns whether arguments or results have names.
    pub(crate) fn has_names(&self) -> bool {
        !self.signature.argument_names.is_empty() || !self.signature.result_names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_result_of_its_type_takes_the_place_of_an_argument() {
        let mut g = Graph::new();
        let (x, y) = (g.named_argument("x", Dtype::F32, &[2]), g.argument(Dtype::F32, &[3]));
        let next = g.sine(x);
        assert_eq!(g.replaces(x, next), next);
        g.replaces(y, next);
        assert_eq!(
            g.finish_named("f", &[("x", next)]).unwrap_err().to_string(),
            "graph: func.func: found tensor<2xf32> in place of tensor<3xf32>, expected an argument of the function and its \
             type"
        );
    }
}
