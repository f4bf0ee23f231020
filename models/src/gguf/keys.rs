//! Reads keys of an architecture, and remembers which.

use std::{cell::RefCell, collections::BTreeSet};

use serde_json::{Map, Value, json};

use super::file::{File, METADATA, TENSORS};
use crate::{error::Error, json::Json, layers::MOST_LAYERS};

/// Largest size that is read. What it may be is the config's to say.
const LARGEST: usize = 1 << 32;

/// Keys that say nothing about what a model computes.
const SILENT: [&str; 3] = ["vocab_size", "rope.scaling.finetuned", "tensor_data_layout"];

/// The keys of an architecture, without its name before them.
pub(super) struct Keys<'m> {
    pub(super) file: &'m File,
    pub(super) json: Json<'m>,
    read: RefCell<BTreeSet<String>>,
}

impl<'m> Keys<'m> {
    pub(super) fn new(file: &'m File) -> Self {
        Self { file, json: Json::of_file(METADATA, &file.metadata), read: RefCell::default() }
    }

    /// Returns the whole name of a key.
    fn name(&self, key: &str) -> String {
        let name = format!("{}.{key}", self.file.architecture);
        self.read.borrow_mut().insert(name.clone());
        name
    }

    /// Returns the size at a key, if it is there.
    pub(super) fn size(&self, key: &str) -> Result<Option<usize>, Error> {
        let name = self.name(key);
        if self.json.has(&name) { self.json.size(&name, 1, LARGEST).map(Some) } else { Ok(None) }
    }

    /// Returns the size at a key that must be there.
    pub(super) fn needed(&self, key: &str) -> Result<usize, Error> {
        let found = self.size(key)?;
        found.ok_or_else(|| self.missing(key, "a size"))
    }

    /// Returns the size at a key where 0 stands for none.
    pub(super) fn size_or_zero(&self, key: &str) -> Result<Option<usize>, Error> {
        let name = self.name(key);
        if self.json.value(&name).and_then(Value::as_u64) == Some(0) { Ok(None) } else { self.size(key) }
    }

    /// Returns the positive number at a key, if it is there.
    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, Error> {
        self.json.positive(&self.name(key))
    }

    /// Returns the number at a key that must be there, which is not negative.
    fn needed_number(&self, key: &str) -> Result<f64, Error> {
        let name = self.name(key);
        if !self.json.has(&name) {
            return Err(self.json.missing(&name, "a number"));
        }
        self.json.not_negative(&name, 0.0)
    }

    /// Returns the text at a key, if it is there.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'m str>, Error> {
        self.json.text(&self.name(key))
    }

    /// Returns the boolean at a key, if it is there.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Error> {
        let name = self.name(key);
        if self.json.has(&name) { self.json.flag(&name, false).map(Some) } else { Ok(None) }
    }

    /// Returns a boolean for each layer, if the key is there.
    pub(super) fn flags(&self, key: &str) -> Result<Option<Vec<bool>>, Error> {
        let name = self.name(key);
        if !self.json.has(&name) {
            return Ok(None);
        }
        self.json.list(&name, self.layers()?, "booleans", Value::as_bool).map(Some)
    }

    /// Refuses another value at a key than one.
    pub(super) fn require(
        &self,
        key: &str,
        supported: &str,
        accepted: impl FnOnce(&Value) -> bool,
    ) -> Result<(), Error> {
        self.json.require(&self.name(key), supported, accepted)
    }

    /// Returns the error for a value of a key that is not supported.
    pub(super) fn unsupported(&self, key: &str, supported: &str) -> Error {
        self.json.unsupported(&self.name(key), supported)
    }

    /// Returns the error for a key that is absent.
    pub(super) fn missing(&self, key: &str, expected: &str) -> Error {
        self.json.missing(&self.name(key), expected)
    }

    /// Returns the number of layers, of which there are lists.
    pub(super) fn layers(&self) -> Result<usize, Error> {
        self.json.required_size(&self.name("block_count"), MOST_LAYERS)
    }

    /// Returns the number of heads of queries, and of keys.
    pub(super) fn heads(&self) -> Result<[usize; 2], Error> {
        let heads = self.needed("attention.head_count")?;
        Ok([heads, self.size("attention.head_count_kv")?.unwrap_or(heads)])
    }

    /// Returns the width of heads.
    pub(super) fn head_dim(&self) -> Result<usize, Error> {
        let of_keys = self.size("attention.key_length")?;
        let [hidden, heads] = [self.needed("embedding_length")?, self.heads()?[0]];
        let width = of_keys.unwrap_or(hidden / heads);
        let supported = format!("{width}, the width of keys");
        self.require("attention.value_length", &supported, |value| value.as_u64() == Some(width as u64))?;
        Ok(width)
    }

    /// Returns whether the file has a tensor.
    pub(super) fn has_tensor(&self, name: &str) -> bool {
        self.file.tensors.contains_key(name)
    }

    /// Returns the size of a dimension of a tensor.
    pub(super) fn tensor_size(&self, name: &str, dimension: usize) -> Result<usize, Error> {
        let tensor = self.file.tensors.get(name).and_then(|tensor| tensor.shape.get(dimension));
        tensor.copied().ok_or_else(|| Error::Missing {
            key: name.to_owned(),
            file: TENSORS,
            expected: format!("a tensor of more than {dimension} dimensions"),
            hint: None,
        })
    }

    /// Returns what most architectures have, in the words of `LlamaConfig`.
    pub(super) fn standard(&self, family: &str) -> Result<Map<String, Value>, Error> {
        let [heads, kv_heads] = self.heads()?;
        let mut config = self.basic(family)?;
        let width = self.head_dim()?;
        config.extend(object(json!({
            "hidden_size": self.needed("embedding_length")?,
            "num_hidden_layers": self.layers()?,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "head_dim": width,
            "max_position_embeddings": self.needed("context_length")?,
        })));
        if let Some(width) = self.size("feed_forward_length")? {
            config.insert("intermediate_size".into(), width.into());
        }
        Ok(config)
    }

    /// Returns what all architectures have.
    pub(super) fn basic(&self, family: &str) -> Result<Map<String, Value>, Error> {
        Ok(object(json!({
            "model_type": family,
            "vocab_size": self.tensor_size("token_embd.weight", 0)?,
            "tie_word_embeddings": !self.has_tensor("output.weight"),
            "torch_dtype": self.dtype(),
        })))
    }

    /// Returns the type to compute in, which a file does not say: that of its numbers, or the type that most models have.
    ///
    /// Converters leave some matrices in F32, such as routers and positions.
    fn dtype(&self) -> &'static str {
        let matrices = || self.file.tensors.values().filter(|tensor| tensor.shape.len() > 1);
        let are_all = |types: &[&str]| matrices().all(|tensor| types.contains(&tensor.ty.as_str()));
        match () {
            () if are_all(&["F32"]) => "float32",
            () if are_all(&["F16", "F32"]) => "float16",
            () => "bfloat16",
        }
    }

    /// Adds the epsilon of RMS norms.
    pub(super) fn rms_epsilon(&self, config: &mut Map<String, Value>) -> Result<(), Error> {
        let epsilon = self.needed_number("attention.layer_norm_rms_epsilon")?;
        config.insert("rms_norm_eps".into(), epsilon.into());
        Ok(())
    }

    /// Adds the epsilon of layer norms by its name in the family.
    pub(super) fn epsilon(&self, config: &mut Map<String, Value>, name: &str) -> Result<(), Error> {
        config.insert(name.into(), self.needed_number("attention.layer_norm_epsilon")?.into());
        Ok(())
    }

    /// Adds a number by its name in the family, if it is there.
    pub(super) fn optional(
        &self,
        config: &mut Map<String, Value>,
        key: &str,
        name: &str,
    ) -> Result<(), Error> {
        if let Some(number) = self.number(key)? {
            config.insert(name.into(), number.into());
        }
        Ok(())
    }

    /// Adds the numbers of experts.
    pub(super) fn experts(&self, config: &mut Map<String, Value>, count: &str) -> Result<(), Error> {
        config.insert(count.into(), self.needed("expert_count")?.into());
        config.insert("num_experts_per_tok".into(), self.needed("expert_used_count")?.into());
        // 1 is softmax.
        self.require("expert_gating_func", "1", |value| value.as_u64() == Some(1))
    }

    /// Refuses keys of the architecture that were not read: they may change what the model computes.
    pub(super) fn refuse_unread(&self) -> Result<(), Error> {
        SILENT.iter().for_each(|key| _ = self.name(key));
        let start = format!("{}.", self.file.architecture);
        let read = self.read.borrow();
        let unread = self.file.metadata.keys().find(|key| key.starts_with(&start) && !read.contains(*key));
        match unread {
            Some(key) => {
                Err(self.json.unsupported(key, "no such key, because it may change what is computed"))
            }
            None => Ok(()),
        }
    }
}

/// Returns the entries of an object.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
