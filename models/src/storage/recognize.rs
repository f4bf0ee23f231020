//! Recognizes schemes by the names and shapes of a checkpoint's tensors.

use safetensors::Dtype;

use super::tensors::StoredTensors;

impl StoredTensors {
    /// Returns the name of the scheme that quantized tensors have the form of; `None` if no tensor is quantized, or several
    /// schemes have such tensors.
    #[must_use]
    pub fn shown_scheme(&self) -> Option<&'static str> {
        self.names().find_map(|name| self.scheme_of(name))
    }

    /// Returns the scheme that a tensor belongs to.
    fn scheme_of(&self, name: &str) -> Option<&'static str> {
        if name.ends_with("_blocks") {
            let scales = format!("{}_scales", name.strip_suffix("_blocks")?);
            return self.has(&scales).then_some("mxfp4");
        }
        let (module, part) = name.rsplit_once('.')?;
        match part {
            "qweight" => self.gptq_or_awq(module),
            "weight_packed" => Some("compressed-tensors"),
            "weight_scale_inv" => Some("fp8"),
            "weight_scale_2" => Some("modelopt"),
            "weight_scale" => self.of_weight_scale(module),
            "absmax" | "SCB" => Some("bitsandbytes"),
            "_weight_qdata" => Some("torchao"),
            "scales" => (self.get(&format!("{module}.weight"))?.dtype == Dtype::U32).then_some("mlx"),
            _ => None,
        }
    }

    /// Returns the scheme of a module with `weight_scale`. compressed-tensors writes a matrix of scales, Model Optimizer one
    /// dimension or four. What both write is neither's.
    fn of_weight_scale(&self, module: &str) -> Option<&'static str> {
        let (weight, scale) =
            (self.get(&format!("{module}.weight"))?, self.get(&format!("{module}.weight_scale"))?);
        let count = scale.shape.iter().product::<usize>();
        match (weight.dtype, scale.shape.len()) {
            (Dtype::U8, _) => Some("modelopt"),
            // MXFP8.
            (Dtype::F8_E4M3, _) if scale.dtype == Dtype::U8 => None,
            // Whether 8-bit floats with one scale are those of AutoFP8, no tensor says.
            (Dtype::F8_E4M3, _) if count == 1 => None,
            (_, 1 | 4) if count > 1 => Some("modelopt"),
            (Dtype::F8_E4M3 | Dtype::I8, _) => Some("compressed-tensors"),
            _ => None,
        }
    }

    /// Returns in which of two forms a module has `qweight`: GPTQ has a column of words for each output.
    fn gptq_or_awq(&self, module: &str) -> Option<&'static str> {
        let shape = |part: &str| self.get(&format!("{module}.{part}")).map(|tensor| tensor.shape);
        let (words, scales) = (shape("qweight")?, shape("scales")?);
        let is_gptq = shape("g_idx").is_some() || words.last() == scales.last();
        Some(if is_gptq { "gptq" } else { "awq" })
    }
}
