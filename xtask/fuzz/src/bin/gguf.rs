//! Fuzzes GGUF files: a header gives a config.json, files of a tokenizer and the storage of every weight, or an error.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use mlxcel_artifacts::GgufHeader;
use mlxcel_models::{CheckpointTensors, GgufModel, GgufTensorInfo, ModelConfig, StoredTensor, StoredTensors};

/// Models with more layers are left out, to keep inputs fast.
const LAYERS_MAX: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    // The data after the header is not read.
    let Ok(header) = GgufHeader::read(bytes, bytes.len() as u64 + (1 << 20)) else { return };
    let metadata = header.metadata.iter().map(|(key, value)| (key.clone(), value.to_json()));
    let tensors = header.tensors.iter().map(|(name, tensor)| GgufTensorInfo {
        name: name.clone(),
        ty: tensor.ty.name.to_owned(),
        in_blocks: tensor.ty.dtype.is_none(),
        shape: tensor.shape.clone(),
    });
    let Ok(gguf) = GgufModel::new(metadata.collect(), tensors, BTreeMap::new()) else { return };
    _ = gguf.small_files();
    let Ok(config) = gguf.config_json() else { return };
    let Ok(model) = ModelConfig::from_json(&config) else { return };
    if model.blocks.len() > LAYERS_MAX {
        return;
    }
    let Ok(model) = gguf.adapt(model) else { return };
    let stored = header.tensors.iter().map(|(name, tensor)| {
        let (dtype, shape) = tensor.stored();
        StoredTensor { name: name.clone(), dtype, shape }
    });
    let stored: StoredTensors = stored.collect();
    let scheme = model.scheme.clone();
    let found = CheckpointTensors { tensors: &stored, scheme: scheme.as_ref() };
    let model = model.with_tensors(|name| found.has(name));
    for weight in model.weights() {
        let Ok(storage) = found.storage(weight) else { continue };
        assert!(storage.tensors.iter().all(|tensor| stored.get(&tensor.name).as_ref() == Some(tensor)));
    }
});
