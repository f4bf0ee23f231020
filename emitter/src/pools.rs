//! The pools of a model's cache.

use mlxcel_artifacts::{
    CacheType,
    entry::{PAGE, PagePart, Pool},
};
use mlxcel_models::{Attention, ModelConfig};
use safetensors::Dtype;

/// Returns the pools of `model`'s cache: layers without a window first, then by the size of the window.
pub(crate) fn pools(model: &ModelConfig, cache_type: CacheType) -> Vec<Pool> {
    let Some(first) = model.blocks.first() else { return Vec::new() };
    let Attention { kv_heads, head_dim, .. } = first.attention.layer;
    let windows = windows(model);
    let pool = |&window: &Option<usize>| {
        let layers = model.blocks.iter().filter(|block| block.attention.layer.window == window).count();
        let part = |dtype, width| PagePart { dtype, shape: vec![2 * layers, kv_heads, PAGE, width] };
        let parts = match cache_type {
            CacheType::Float(float) => vec![part(float.dtype(), head_dim)],
            CacheType::Q8 => {
                vec![part(Dtype::I8, head_dim), part(Dtype::F16, head_dim / CacheType::Q8_GROUP_SIZE)]
            }
        };
        Pool { window, parts }
    };
    windows.iter().map(pool).collect()
}

/// Returns the windows of the layers, each once.
pub(crate) fn windows(model: &ModelConfig) -> Vec<Option<usize>> {
    let mut windows: Vec<_> = model.blocks.iter().map(|block| block.attention.layer.window).collect();
    windows.sort_unstable();
    windows.dedup();
    windows
}
