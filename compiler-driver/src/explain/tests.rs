use std::{fs, path::Path};

use mlxcel_emitter::{Isa, Numerics, Plan, Products};
use mlxcel_models::{PRESETS, Preset, Storage};
use safetensors::Dtype;

use super::*;

fn fixture(name: &str) -> ModelSource {
    ModelSource::Folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle/fixtures").join(name))
}

fn explained(source: &ModelSource) -> String {
    explain(source, &Cancel::new()).unwrap()
}

#[test]
fn presets_are_explained() {
    for name in ["llama-3.2-1b", "gemma-2-2b", "phi-4-mini", "gpt2"] {
        insta::assert_snapshot!(name, explained(&ModelSource::find(name).unwrap()));
    }
}

#[test]
fn folders_are_explained() {
    // Shards, and sizes that cannot be quantized; two kinds of layers; parts of heads; unused tensors.
    for name in ["everything", "cohere2-hub", "stablelm-parallel", "gpt2-inverse-layers"] {
        insta::assert_snapshot!(name, explained(&fixture(name)));
    }
}

#[test]
fn stored_bits_are_explained() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/oracle/quantized_checkpoints/fixtures");
    let gguf = ModelSource::Gguf(folder.join("gguf-k/model.gguf"));
    let of_folder = |name: &str| ModelSource::Folder(folder.join(name));
    for (name, source) in [
        ("gguf-k", gguf),
        ("mlx-overrides", of_folder("mlx-overrides")),
        ("gptq-act-order", of_folder("gptq-act-order")),
        ("ct-fp8-block", of_folder("ct-fp8-block")),
    ] {
        let text = explained(&source);
        let is_stored =
            |line: &&str| ["quantized", "stored", "stay wide"].iter().any(|start| line.starts_with(start));
        insta::assert_snapshot!(name, text.lines().filter(is_stored).collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn every_line_has_a_name() {
    for preset in PRESETS {
        let text = explained(&ModelSource::Preset(preset));
        assert!(text.lines().all(|line| !line.starts_with(' ') && line.trim_end() == line), "{text}");
    }
}

#[test]
fn parts_add_up_to_the_model() {
    for preset in PRESETS {
        let model = preset.model().unwrap();
        let parts = weights::parts(&model, &|_| Dtype::BF16);
        assert_eq!(parts[5].parameters, model.parameters(), "{}", preset.name);
        assert_eq!(parts[5].bytes[..2], [4, 2].map(|size| size * model.parameters()), "{}", preset.name);
    }
}

#[test]
fn quantized_sizes_equal_packed_sizes() {
    let model = Preset::find("smollm2-135m").unwrap().model().unwrap();
    let gpt2 = Preset::find("gpt2").unwrap().model().unwrap();
    for (mut model, has_padding) in [(model, false), (gpt2, true)] {
        model.blocks.truncate(2);
        let [.., all] = weights::parts(&model, &|_| Dtype::BF16);
        for (form, quant) in [(2, Quant::Q8), (3, Quant::Q4), (4, Quant::Q4K)] {
            // Panels of kernels have whole numbers of outputs, and the vocabulary may have less.
            if quant == Quant::Q4K && has_padding {
                continue;
            }
            // Only kernels read superblocks.
            let isa = Isa::X86_64V3;
            let kernels = Numerics { products: Products::Kernels(isa), ..Numerics::default() };
            let numerics = if quant == Quant::Q4K { kernels } else { Numerics::default() };
            let plan = Plan { quant, ..Plan::new(&model, Float::Bf16, 32).for_target(numerics) };
            let program = mlxcel_emitter::emit(&model, &plan, &Storage::all(Dtype::BF16)).unwrap();
            let steps = program.packed.unwrap().steps;
            let packed: usize =
                steps.iter().flat_map(|step| &step.results).filter_map(|result| result.bytes()).sum();
            assert_eq!(all.bytes[form], packed as u64, "{} in {quant}", model.family);
        }
    }
}

#[test]
fn a_folder_needs_no_weights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpt2");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("config.json"), Preset::find("gpt2").unwrap().config).unwrap();
    assert_eq!(explained(&ModelSource::Folder(path)), explained(&ModelSource::find("gpt2").unwrap()));
}

#[test]
fn consecutive_numbers_are_ranges() {
    assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
    assert_eq!(ranges(&[0, 2, 4, 6, 8, 10, 12, 14]), "0, 2, 4, 6, 8, 10, 12, 14");
    assert_eq!(ranges(&[0, 2, 4, 6, 8, 10, 12, 14, 16]), "0, 2, 4, 6, 8, 10, 12, 14, …");
}
