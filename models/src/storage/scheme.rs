//! Schemes: what a config.json says about quantized weights.

use serde_json::{Map, Value};

use super::{
    coding::Storage,
    schemes,
    tensors::{StoredTensors, WrongStorage},
};
use crate::{error::Error, json::Json, layers::Weight, nearest::nearest};

/// Declares the schemes. Each has a file in `schemes/`, with a structure that is read from config.json. The last scheme is
/// that of a container, which no config.json names.
macro_rules! schemes {
    (
        $($(#[$doc:meta])* $name:literal => $variant:ident($module:ident),)*
        container $(#[$other_doc:meta])* $other_name:literal => $other:ident($other_module:ident) $(,)?
    ) => {
        /// How a checkpoint stores quantized weights.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Scheme {
            $($(#[$doc])* $variant(schemes::$module::$variant),)*
            $(#[$other_doc])* $other(schemes::$other_module::$other),
        }

        /// Values of `quant_method`.
        const METHODS: &[&str] = &[$($name),*];

        impl Scheme {
            /// Reads the scheme of this name from its part of config.json.
            fn of_method(name: &str, json: &Json<'_>) -> Result<Option<Self>, Error> {
                Ok(match name {
                    $($name => Some(Self::$variant(schemes::$module::$variant::read(json)?)),)*
                    _ => None,
                })
            }

            /// Returns the name that config.json has for it, or the container's.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::$other(_) => $other_name,
                }
            }

            /// Returns whether a weight of this name is stored in the scheme's form.
            pub(super) fn stores(&self, name: &str, tensors: &StoredTensors) -> bool {
                match self {
                    $(Self::$variant(scheme) => scheme.stores(name, tensors),)*
                    Self::$other(scheme) => scheme.stores(name, tensors),
                }
            }

            /// Returns how a weight is stored in the scheme's form.
            pub(super) fn storage(
                &self,
                weight: &Weight,
                tensors: &StoredTensors,
            ) -> Result<Storage, WrongStorage> {
                match self {
                    $(Self::$variant(scheme) => scheme.storage(weight, tensors),)*
                    Self::$other(scheme) => scheme.storage(weight, tensors),
                }
            }
        }
    };
}

schemes! {
    /// AWQ, as autoawq writes it.
    "awq" => Awq(awq),
    /// bitsandbytes' 4 bits and 8 bits.
    "bitsandbytes" => BitsAndBytes(bitsandbytes),
    /// compressed-tensors, as llmcompressor writes it.
    "compressed-tensors" => CompressedTensors(compressed_tensors),
    /// 8-bit floats, as DeepSeek, Qwen and Mistral publish them.
    "fp8" => Fp8(fp8),
    /// GPTQ, as gptqmodel and auto-gptq write it.
    "gptq" => Gptq(gptq),
    /// MLX, as mlx-lm writes it.
    "mlx" => Mlx(mlx),
    /// NVIDIA's Model Optimizer.
    "modelopt" => ModelOpt(modelopt),
    /// The experts of gpt-oss.
    "mxfp4" => Mxfp4(mxfp4),
    /// torchao's 8-bit integers, as transformers writes them.
    "torchao" => TorchAo(torchao),
    container
    /// A GGUF file.
    "gguf" => Gguf(gguf),
}

impl Scheme {
    /// Returns whether the contents of a tensor decide how weights are stored, see
    /// [`StoredTensors::add_contents`](super::StoredTensors::add_contents).
    #[must_use]
    pub fn reads(&self, name: &str) -> bool {
        match self {
            Self::BitsAndBytes(_) => schemes::bitsandbytes::BitsAndBytes::reads(name),
            Self::CompressedTensors(_) | Self::Gptq(_) => name.ends_with("g_idx"),
            Self::Awq(_)
            | Self::Fp8(_)
            | Self::Gguf(_)
            | Self::Mlx(_)
            | Self::ModelOpt(_)
            | Self::Mxfp4(_)
            | Self::TorchAo(_) => false,
        }
    }

    /// Returns whether it is that of a container: tensors have names of their own, and may all be numbers that need no decoding.
    #[must_use]
    pub fn is_container(&self) -> bool {
        matches!(self, Self::Gguf(_))
    }

    /// Returns whether a tensor of this name is no part of any weight: what inputs are rounded to, and what says again how
    /// weights are stored.
    #[must_use]
    pub fn ignores(&self, name: &str) -> bool {
        let endings: &[&str] = match self {
            Self::Awq(_) | Self::Mlx(_) | Self::Mxfp4(_) | Self::TorchAo(_) => &[],
            Self::Fp8(_) => {
                &[".input_scale", ".activation_scale", ".kv_scale", ".k_scale", ".v_scale", ".q_scale"]
            }
            Self::ModelOpt(_) => &[".input_scale", ".k_scale", ".v_scale"],
            Self::BitsAndBytes(_) => &[
                ".weight_format",
                ".quant_map",
                ".quant_state.bitsandbytes__nf4",
                ".quant_state.bitsandbytes__fp4",
            ],
            Self::CompressedTensors(_) => &[
                ".weight_shape",
                ".weight_g_idx",
                ".weight_zero_point",
                ".input_scale",
                ".input_zero_point",
                ".input_global_scale",
                ".k_scale",
                ".v_scale",
                ".q_scale",
                ".k_zero_point",
                ".v_zero_point",
                ".q_zero_point",
            ],
            // Numbers of the rope, which are read with the metadata.
            Self::Gguf(_) => &["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"],
            Self::Gptq(_) => &[".g_idx"],
        };
        endings.iter().any(|end| name.ends_with(end))
    }

    /// Returns what the checkpoint asks for beside its weights, and what is not done.
    #[must_use]
    pub fn warning(&self) -> Option<&'static str> {
        let rounds_cache = match self {
            Self::CompressedTensors(scheme) => scheme.rounds_cache,
            Self::Fp8(scheme) => scheme.rounds_cache,
            Self::ModelOpt(scheme) => scheme.rounds_cache,
            _ => false,
        };
        rounds_cache.then_some(
            "`kv_cache_scheme` rounds keys and values, which are kept as they are: --cache-type q8 stores them in 8 bits",
        )
    }

    /// Returns the names of modules that config.json excludes and that none of these weights is in. They change nothing.
    #[must_use]
    pub fn unmatched_exclusions(&self, weights: &[&Weight]) -> Vec<&str> {
        match self {
            Self::Awq(scheme) => scheme.excluded.unmatched(weights),
            Self::CompressedTensors(scheme) => scheme.excluded.unmatched(weights),
            Self::Fp8(scheme) => scheme.excluded.unmatched(weights),
            Self::ModelOpt(scheme) => scheme.excluded.unmatched(weights),
            Self::TorchAo(scheme) => scheme.excluded.unmatched(weights),
            Self::BitsAndBytes(_) | Self::Gguf(_) | Self::Gptq(_) | Self::Mlx(_) | Self::Mxfp4(_) => {
                Vec::new()
            }
        }
    }

    /// Reads the scheme of a config.json; `None` if it mentions none.
    pub(crate) fn read(object: &Map<String, Value>) -> Result<Option<Self>, Error> {
        let json = Json::top(object);
        // mlx-lm writes the same into both keys, without a method.
        if let Some(mlx) = json.object("quantization")? {
            if let Some(other) = json.object("quantization_config")? {
                let expected = "no `quant_method`, because `quantization` is there too";
                other.require("quant_method", expected, |_| false)?;
            }
            return Ok(Some(Self::Mlx(schemes::mlx::Mlx::read(&mlx)?)));
        }
        let Some(config) = json.object("quantization_config")? else { return Ok(None) };
        let Some(name) = config.text("quant_method")? else {
            return Err(config.missing("quant_method", format!("one of {}", METHODS.join(", "))));
        };
        let found = Self::of_method(name, &config)?;
        found.map(Some).ok_or_else(|| {
            let near = nearest(name, METHODS.iter().copied(), METHODS.len());
            config
                .unsupported("quant_method", format!("one of {}", near.join(", ")))
                .with_hint("use the checkpoint that it was quantized from")
        })
    }
}
