//! Element types of GGUF files: ggml's, by number and name.

use safetensors::Dtype;

/// An element type of ggml. Elements are stored in blocks of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgmlType {
    /// ggml's name, such as `Q4_K`.
    pub name: &'static str,
    /// Elements of a block.
    pub block: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// The type of elements that are numbers by themselves.
    pub dtype: Option<Dtype>,
}

/// Types by number (`ggml_type` of ggml.h). Numbers that are left out belong to types that ggml removed.
const TYPES: [(u32, GgmlType); 33] = [
    number(0, "F32", Dtype::F32),
    number(1, "F16", Dtype::F16),
    blocks(2, "Q4_0", 32, 18),
    blocks(3, "Q4_1", 32, 20),
    blocks(6, "Q5_0", 32, 22),
    blocks(7, "Q5_1", 32, 24),
    blocks(8, "Q8_0", 32, 34),
    blocks(9, "Q8_1", 32, 36),
    blocks(10, "Q2_K", 256, 84),
    blocks(11, "Q3_K", 256, 110),
    blocks(12, "Q4_K", 256, 144),
    blocks(13, "Q5_K", 256, 176),
    blocks(14, "Q6_K", 256, 210),
    blocks(15, "Q8_K", 256, 292),
    blocks(16, "IQ2_XXS", 256, 66),
    blocks(17, "IQ2_XS", 256, 74),
    blocks(18, "IQ3_XXS", 256, 98),
    blocks(19, "IQ1_S", 256, 50),
    blocks(20, "IQ4_NL", 32, 18),
    blocks(21, "IQ3_S", 256, 110),
    blocks(22, "IQ2_S", 256, 82),
    blocks(23, "IQ4_XS", 256, 136),
    number(24, "I8", Dtype::I8),
    number(25, "I16", Dtype::I16),
    number(26, "I32", Dtype::I32),
    number(27, "I64", Dtype::I64),
    number(28, "F64", Dtype::F64),
    blocks(29, "IQ1_M", 256, 56),
    number(30, "BF16", Dtype::BF16),
    blocks(34, "TQ1_0", 256, 54),
    blocks(35, "TQ2_0", 256, 66),
    blocks(39, "MXFP4", 32, 17),
    blocks(40, "NVFP4", 64, 36),
];

const fn blocks(number: u32, name: &'static str, block: usize, bytes: usize) -> (u32, GgmlType) {
    (number, GgmlType { name, block, bytes, dtype: None })
}

const fn number(number: u32, name: &'static str, dtype: Dtype) -> (u32, GgmlType) {
    let bytes = match dtype {
        Dtype::I8 => 1,
        Dtype::F16 | Dtype::BF16 | Dtype::I16 => 2,
        Dtype::F64 | Dtype::I64 => 8,
        _ => 4,
    };
    (number, GgmlType { name, block: 1, bytes, dtype: Some(dtype) })
}

impl GgmlType {
    /// Returns the type with this number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        TYPES.iter().find(|(known, _)| *known == number).map(|(_, ty)| *ty)
    }
}
