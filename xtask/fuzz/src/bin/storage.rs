//! Fuzzes quantized checkpoints: a config.json and the tensors' names, types and shapes give a storage or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mlxcel_fuzz::two_files;
use mlxcel_models::{CheckpointTensors, ModelConfig, StoredTensor, StoredTensors};
use safetensors::{Dtype, tensor::TensorInfo};

/// Models with more layers are left out, to keep inputs fast.
const LAYERS_MAX: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let (config, header) = two_files(bytes);
    let Ok(config) = str::from_utf8(config) else { return };
    let Ok(model) = ModelConfig::from_json(config) else { return };
    let header: std::collections::BTreeMap<String, TensorInfo> =
        serde_json::from_slice(header).unwrap_or_default();
    let mut stored: StoredTensors = header
        .iter()
        .map(|(name, TensorInfo { dtype, shape, .. })| StoredTensor {
            name: name.clone(),
            dtype: *dtype,
            shape: shape.clone(),
        })
        .collect();
    let scheme = model.scheme.clone();
    if let Some(scheme) = &scheme {
        for name in header.keys().filter(|name| scheme.reads(name)) {
            // Names are as good as other bytes.
            stored.add_contents(name, name.as_bytes());
        }
    }
    if model.blocks.len() > LAYERS_MAX {
        return;
    }
    let found = CheckpointTensors { tensors: &stored, scheme: scheme.as_ref() };
    let model = model.with_tensors(|name| found.has(name));
    for weight in model.weights() {
        let Ok(storage) = found.storage(weight) else { continue };
        assert!(!storage.tensors.is_empty());
        assert!(storage.tensors.iter().all(|tensor| stored.get(&tensor.name).as_ref() == Some(tensor)));
        assert!(storage.coding.is_some() || storage.dtype() != Dtype::U8);
    }
});
