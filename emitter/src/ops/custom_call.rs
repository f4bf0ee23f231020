//! Calls of functions that others compiled.

use crate::{
    graph::{Graph, Tensor},
    kernels::KernelConstant,
    types::TensorType,
};

impl Graph {
    /// Calls the C function `target` in an object that the program is linked with, `mlxcel-compile --kernels`, and returns its
    /// results.
    ///
    /// The function takes the addresses of operands and results, in row-major order, then the attributes in the order of their
    /// names, then the range of items that it shall compute. The attributes `items`, `grain` and `threads` are not passed on:
    /// they say into how many items the work is divided, how many of them a workgroup of a CPU computes, and how many threads a
    /// block of a GPU has. `jax.ffi.ffi_call` writes the same op.
    pub fn custom_call(
        &mut self,
        target: &str,
        operands: &[Tensor],
        results: &[TensorType],
        attributes: &[(&str, KernelConstant)],
    ) -> Vec<Tensor> {
        const OP: &str = "stablehlo.custom_call";
        let poison = || vec![Self::poison(); results.len()];
        if Self::poisoned(operands) {
            return poison();
        }
        let is_name = |name: &str| {
            !name.starts_with(|c: char| c.is_ascii_digit())
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let mut names = std::iter::once(target).chain(attributes.iter().map(|&(name, _)| name));
        if let Some(found) = names.find(|name| !is_name(name)) {
            let problem = format!("found the name '{}', expected one of C", found.escape_default());
            self.fail(OP, problem);
            return poison();
        }
        let of_kernel =
            |(name, constant): &(&str, KernelConstant)| format!("{name} = {}", constant.attribute());
        let config: Vec<_> = attributes.iter().map(of_kernel).collect();
        let attributes = vec![
            // The version with typed attributes, as in `backend_config`.
            ("api_version", "4 : i32".to_owned()),
            ("backend_config", format!("{{{}}}", config.join(", "))),
            ("call_target_name", format!("\"{target}\"")),
        ];
        let results = results.iter().cloned().map(Into::into).collect();
        self.op_with_regions(OP, operands, attributes, vec![], results)
    }
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;

    use super::*;
    use crate::Module;

    /// Returns the module of a function that calls `target` with these attributes, or the error.
    fn called(target: &str, attributes: &[(&str, KernelConstant)]) -> Result<String, String> {
        let mut g = Graph::new();
        let x = g.argument(Dtype::F32, &[4]);
        let ty = TensorType::new(Dtype::F32, [4]);
        let results = g.custom_call(target, &[x], &[ty.clone(), ty], attributes);
        let mut module = Module::new("m");
        module.add(g.finish("main", &results).map_err(|error| error.to_string())?);
        module.to_mlir().map_err(|error| error.to_string())
    }

    #[test]
    fn a_call_is_written_as_jax_writes_it() {
        let attributes = [("eps", 1e-5_f32.into()), ("items", 4_i64.into()), ("big", f64::MAX.into())];
        let text = called("scale", &attributes).unwrap();
        assert!(text.contains("\"stablehlo.custom_call\"(%arg0)"), "{text}");
        for part in [
            "api_version = 4 : i32",
            "call_target_name = \"scale\"",
            "eps = 9.99999974E-6 : f32",
            "items = 4 : i64",
            "big = 1.7976931348623157E+308 : f64",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn names_are_those_of_c() {
        let error = called("a b", &[]).unwrap_err();
        assert_eq!(error, "graph: stablehlo.custom_call: found the name 'a b', expected one of C");
        assert!(called("f", &[("1x", 1_i64.into())]).is_err());
        assert!(called("f", &[("", 1_i64.into())]).is_err());
    }
}
