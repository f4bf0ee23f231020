//! Schemes of quantized checkpoints that are refused, and tensors that are not those of the scheme.

use mlxcel_models::{
    CheckpointTensors, FloatCodes, ModelConfig, Storage, StoredTensor, StoredTensors, Weight,
};
use safetensors::Dtype::{self, BF16, F8_E4M3, F16, F32, I8, I32, U8, U32};
use serde_json::{Value, json};

use crate::changed;

/// Returns the message for a config.json with this scheme.
fn refused(config: &Value) -> String {
    ModelConfig::from_json(&changed(&json!({ "quantization_config": config }))).unwrap_err().to_string()
}

#[test]
fn schemes_that_are_refused() {
    let compressed = |changes: Value| {
        let mut weights = json!({ "num_bits": 4, "type": "int", "strategy": "group", "group_size": 32 });
        weights.as_object_mut().unwrap().extend(changes.as_object().cloned().unwrap());
        let groups = json!({ "group_0": { "targets": ["Linear"], "weights": weights } });
        refused(
            &json!({ "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups }),
        )
    };
    let rotated = |groups: Value| {
        refused(
            &json!({ "quant_method": "compressed-tensors", "transform_config": { "config_groups": groups } }),
        )
    };
    let torchao =
        |config: Value| refused(&json!({ "quant_method": "torchao", "quant_type": { "default": config } }));
    insta::assert_snapshot!(
        "schemes",
        [
            refused(&json!(3)),
            refused(&json!({})),
            refused(&json!({ "quant_method": 3 })),
            refused(&json!({ "quant_method": "gpt" })),
            refused(&json!({ "quant_method": "gptq" })),
            refused(&json!({ "quant_method": "gptq", "bits": 5 })),
            refused(&json!({ "quant_method": "gptq", "bits": 4, "group_size": 0 })),
            refused(&json!({ "quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin" })),
            refused(&json!({ "quant_method": "gptq", "bits": 4, "dynamic": 3 })),
            refused(&json!({ "quant_method": "gptq", "bits": 4, "format": "marlin" })),
            refused(
                &json!({ "quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq", "format": "gptq_v2" })
            ),
            refused(&json!({ "quant_method": "awq", "bits": 3 })),
            refused(&json!({ "quant_method": "awq", "version": "gemv_fast" })),
            refused(&json!({ "quant_method": "awq", "version": "gemv" })),
            refused(&json!({ "quant_method": "awq", "version": "gemv", "group_size": 16 })),
            refused(&json!({ "quant_method": "fp8", "weight_block_size": [128] })),
            refused(&json!({ "quant_method": "modelopt" })),
            refused(&json!({ "quant_method": "modelopt", "quant_algo": "W4A16_AWQ" })),
            refused(&json!({ "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION" })),
            refused(&json!({ "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
                "quantized_layers": { "a": { "quant_algo": "INT3" } } })),
            refused(&json!({ "quant_method": "modelopt", "quant_algo": "FP8", "ignore": "lm_head" })),
            refused(&json!({ "quant_method": "bitsandbytes" })),
            refused(
                &json!({ "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf5" })
            ),
            refused(&json!({ "quant_method": "compressed-tensors" })),
            refused(&json!({ "quant_method": "compressed-tensors", "kv_cache_scheme": "fp8" })),
            rotated(json!({ "v": { "type": "hadamard", "apply": [
                { "location": "weight_input", "inverse": true }, { "location": "input" }] } })),
            rotated(json!(3)),
            refused(&json!({ "quant_method": "torchao" })),
            refused(&json!({ "quant_method": "torchao", "quant_type": { "default": "int8" } })),
            torchao(json!({ "_type": "Int4WeightOnlyConfig" })),
            torchao(json!({ "_type": "Int8WeightOnlyConfig", "_version": 1 })),
            compressed(json!({ "num_bits": 7 })),
            compressed(json!({ "type": "float" })),
            compressed(json!({ "strategy": "channels" })),
            compressed(json!({ "group_size": null })),
            compressed(json!({ "actorder": "random" })),
        ]
        .join("\n")
    );
    let mlx = |changes: Value| {
        ModelConfig::from_json(&changed(&json!({ "quantization": changes }))).unwrap_err().to_string()
    };
    insta::assert_snapshot!(
        "mlx",
        [
            mlx(json!(4)),
            mlx(json!({ "bits": 7 })),
            mlx(json!({ "group_size": 33 })),
            mlx(json!({ "mode": "nf4" })),
            mlx(json!({ "model.layers.0.mlp": 3 })),
            mlx(json!({ "model.layers.0.mlp": { "bits": 9 } })),
        ]
        .join("\n")
    );
}

#[test]
fn two_schemes_at_once_are_refused() {
    let with = |other: Value| {
        let mlx = json!({ "bits": 4, "group_size": 64 });
        ModelConfig::from_json(&changed(&json!({ "quantization": mlx, "quantization_config": other })))
    };
    for both in [json!(null), json!({ "bits": 4, "group_size": 64 })] {
        assert_eq!(with(both).unwrap().scheme.unwrap().name(), "mlx");
    }
    assert_eq!(
        with(json!({ "quant_method": "awq", "bits": 4 })).unwrap_err().to_string(),
        "`quantization_config.quant_method` is \"awq\", which is not supported, expected no `quant_method`, because \
         `quantization` is there too"
    );
}

/// Returns how a weight of `[32, 64]` is stored in these tensors.
pub(crate) fn storage(config: &Value, tensors: &[(&str, Dtype, &[usize])]) -> Result<Storage, String> {
    storage_with(config, tensors, &[])
}

/// Returns the same where the bytes of some tensors are known.
fn storage_with(
    config: &Value,
    tensors: &[(&str, Dtype, &[usize])],
    contents: &[(&str, &[u8])],
) -> Result<Storage, String> {
    let scheme = ModelConfig::from_json(&changed(config)).unwrap().scheme;
    let tensors = tensors.iter().map(|&(name, dtype, shape)| StoredTensor {
        name: format!("a.{name}"),
        dtype,
        shape: shape.to_vec(),
    });
    let mut tensors: StoredTensors = tensors.collect();
    contents.iter().for_each(|&(name, bytes)| tensors.add_contents(format!("a.{name}"), bytes));
    let weight = Weight { name: "a.weight".into(), shape: vec![32, 64] };
    CheckpointTensors { tensors: &tensors, scheme: scheme.as_ref() }
        .storage(&weight)
        .map_err(|wrong| format!("{}: {}", wrong.tensor, wrong.problem))
}

#[test]
fn tensors_that_are_not_those_of_the_scheme() {
    let gptq = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32 } });
    let ordered = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true } });
    let awq = json!({ "quantization_config": { "quant_method": "awq", "group_size": 32 } });
    let uneven = json!({ "quantization_config": { "quant_method": "awq", "group_size": 48 } });
    let fp8 = json!({ "quantization_config": { "quant_method": "fp8", "weight_block_size": [16, 48] } });
    let whole = json!({ "quantization_config": { "quant_method": "fp8", "weight_block_size": null } });
    let gemv =
        json!({ "quantization_config": { "quant_method": "awq", "version": "gemv", "group_size": 32 } });
    let torchao = json!({ "quantization_config": { "quant_method": "torchao",
        "quant_type": { "default": { "_type": "Int8WeightOnlyConfig", "_version": 2 } } } });
    let nf4 = json!({ "quantization_config": {
        "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4" } });
    let mlx = json!({ "quantization": { "bits": 4, "group_size": 32 } });
    let words: (&str, Dtype, &[usize]) = ("qweight", I32, &[8, 32]);
    let scales: (&str, Dtype, &[usize]) = ("scales", F16, &[2, 32]);
    let zeros: (&str, Dtype, &[usize]) = ("qzeros", I32, &[2, 4]);
    storage(&gptq, &[words, scales, zeros]).unwrap();
    for scale in ["weight_scale_inv", "weight_scale"] {
        storage(&whole, &[("weight", F8_E4M3, &[32, 64]), (scale, F32, &[])]).unwrap();
        storage(&whole, &[("weight", F8_E4M3, &[32, 64]), (scale, BF16, &[1])]).unwrap();
    }
    let of_gemv = [("qweight", I32, [32, 8]), ("qzeros", I32, [32, 4]), ("scales", F16, [32, 32])];
    storage(&gemv, &of_gemv.each_ref().map(|(name, dtype, shape)| (*name, *dtype, shape.as_slice())))
        .unwrap();
    let refused = |config: &Value, tensors: &[(&str, Dtype, &[usize])]| storage(config, tensors).unwrap_err();
    insta::assert_snapshot!(
        "tensors",
        [
            refused(&gptq, &[]),
            refused(&gptq, &[words]),
            refused(&gptq, &[words, zeros]),
            refused(&gptq, &[words, zeros, ("scales", F16, &[1, 32])]),
            refused(&gptq, &[words, zeros, ("scales", I32, &[2, 32])]),
            refused(&gptq, &[("qweight", I8, &[8, 32]), zeros, scales]),
            refused(&ordered, &[words, zeros, scales]),
            refused(&awq, &[words]),
            refused(&awq, &[("qweight", I32, &[64, 4]), zeros]),
            refused(&uneven, &[("qweight", I32, &[64, 4])]),
            refused(&fp8, &[("weight", F8_E4M3, &[32, 64])]),
            refused(&fp8, &[("weight", F8_E4M3, &[32, 64]), ("weight_scale_inv", F32, &[2, 1])]),
            refused(&fp8, &[("weight", BF16, &[32, 64]), ("weight_scale_inv", F32, &[2, 2])]),
            refused(&whole, &[("weight", F8_E4M3, &[32, 64]), ("weight_scale_inv", F32, &[2, 1])]),
            refused(&whole, &[("weight", F8_E4M3, &[32, 64]), ("weight_scale", F32, &[32, 1])]),
            refused(&whole, &[("weight", BF16, &[32, 64]), ("weight_scale", F32, &[])]),
            refused(&gemv, &[("qweight", I32, &[64, 4])]),
            refused(&gemv, &[("qweight", I32, &[32, 8]), ("qzeros", I32, &[32, 1])]),
            refused(
                &gemv,
                &[("qweight", I32, &[32, 8]), ("qzeros", I32, &[32, 4]), ("scales", F16, &[32, 2])]
            ),
            refused(&torchao, &[("_weight_qdata", I8, &[32, 32])]),
            refused(&torchao, &[("_weight_qdata", I8, &[32, 64]), ("_weight_scale", F32, &[32, 3])]),
            refused(
                &torchao,
                &[
                    ("_weight_qdata", I8, &[32, 64]),
                    ("_weight_scale", F32, &[32, 2]),
                    ("_weight_zero_point", I8, &[32, 1])
                ]
            ),
            refused(&nf4, &[("weight", U8, &[1024, 1]), ("weight.absmax", F32, &[32])]),
            refused(&mlx, &[("weight", U32, &[32, 8]), ("scales", F16, &[32, 2])]),
            refused(
                &mlx,
                &[("weight", U32, &[32, 16]), ("scales", F16, &[32, 2]), ("biases", F16, &[32, 2])]
            ),
        ]
        .join("\n")
    );
}

#[test]
fn rounding_of_the_cache_is_said_and_not_done() {
    let weights = json!({ "num_bits": 8, "type": "int", "strategy": "channel" });
    let mut compressed = json!({ "quant_method": "compressed-tensors", "format": "int-quantized",
        "config_groups": { "group_0": { "targets": ["Linear"], "weights": weights } } });
    let mut fp8 = json!({ "quant_method": "fp8" });
    let mut modelopt = json!({ "quant_method": "modelopt", "quant_algo": "NVFP4" });
    let warning = |config: &Value| {
        let model = ModelConfig::from_json(&changed(&json!({ "quantization_config": config }))).unwrap();
        let scheme = model.scheme.unwrap();
        assert!(scheme.ignores("model.layers.0.self_attn.k_scale"));
        scheme.warning()
    };
    assert_eq!([&compressed, &fp8, &modelopt].map(warning), [None; 3]);
    compressed["kv_cache_scheme"] = json!({ "num_bits": 8, "type": "float" });
    fp8["kv_cache_scheme"] = "static".into();
    modelopt["kv_cache_quant_algo"] = "FP8".into();
    for found in [&compressed, &fp8, &modelopt].map(warning) {
        assert!(found.unwrap().starts_with("`kv_cache_scheme` rounds keys and values"));
    }
}

#[test]
fn a_head_in_few_bits_is_stored_as_other_weights_are() {
    let gptq = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32, "lm_head": true } });
    let scheme = ModelConfig::from_json(&changed(&gptq)).unwrap().scheme;
    let tensors = [("qweight", I32, [8, 128]), ("qzeros", I32, [2, 16]), ("scales", F16, [2, 128])];
    let tensors: StoredTensors = tensors
        .into_iter()
        .map(|(name, dtype, shape)| StoredTensor {
            name: format!("lm_head.{name}"),
            dtype,
            shape: shape.to_vec(),
        })
        .collect();
    let tensors = CheckpointTensors { tensors: &tensors, scheme: scheme.as_ref() };
    assert!(tensors.has("lm_head.weight"));
    let weight = Weight { name: "lm_head.weight".into(), shape: vec![128, 64] };
    assert!(tensors.storage(&weight).unwrap().coding.is_some());
}

/// Returns the config of compressed-tensors with these groups of settings, besides 4 bits in groups of 32.
fn compressed(groups: &[Value]) -> Value {
    let groups = groups.iter().enumerate().map(|(index, changes)| {
        let mut weights = json!({ "num_bits": 4, "type": "int", "strategy": "group", "group_size": 32 });
        weights.as_object_mut().unwrap().extend(changes.as_object().cloned().unwrap());
        (format!("group_{index}"), json!({ "targets": ["Linear"], "weights": weights }))
    });
    let groups: serde_json::Map<String, Value> = groups.collect();
    json!({ "quantization_config": {
        "quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups } })
}

#[test]
fn settings_that_leave_out_a_tensor_are_those_of_other_modules() {
    let plain: [(&str, Dtype, &[usize]); 2] =
        [("weight_packed", I32, &[32, 8]), ("weight_scale", BF16, &[32, 2])];
    let zeros: (&str, Dtype, &[usize]) = ("weight_zero_point", I32, &[4, 2]);
    let order: (&str, Dtype, &[usize]) = ("weight_g_idx", I32, &[64]);
    let [with_zeros, with_order] = [zeros, order].map(|more| [plain.as_slice(), &[more]].concat());
    let names = |config: &Value, tensors: &[(&str, Dtype, &[usize])]| {
        let storage = storage(config, tensors)?;
        Ok::<_, String>(storage.tensors.into_iter().map(|tensor| tensor.name).collect::<Vec<_>>())
    };
    let symmetric = compressed(&[json!({ "symmetric": true })]);
    assert_eq!(names(&symmetric, &plain).unwrap(), ["a.weight_packed", "a.weight_scale"]);
    let either = compressed(&[
        json!({ "symmetric": true }),
        json!({ "symmetric": false }),
        json!({ "actorder": "group" }),
    ]);
    let last = |tensors| names(&either, tensors).unwrap().pop().unwrap();
    assert_eq!(last(&plain), "a.weight_scale");
    assert_eq!(last(&with_zeros), "a.weight_zero_point");
    assert_eq!(last(&with_order), "a.weight_g_idx");
    assert_eq!(
        [&with_zeros, &with_order].map(|tensors| names(&symmetric, tensors).unwrap_err()),
        [
            "a.weight_zero_point: found, expected none, because config.json has `symmetric` weights",
            "a.weight_g_idx: found, expected none, because config.json has no `actorder` group",
        ]
    );
}

/// In every scheme, zero points have the bits of codes, so that none is out of range: what is refused is another type of tensor.
#[test]
fn zero_points_of_more_bits_than_codes_are_refused() {
    let gptq = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32 } });
    let torchao = json!({ "quantization_config": { "quant_method": "torchao",
        "quant_type": { "default": { "_type": "Int8WeightOnlyConfig", "_version": 2 } } } });
    let packed = compressed(&[json!({ "symmetric": false })]);
    let mut integers = compressed(&[json!({ "symmetric": false, "num_bits": 8 })]);
    integers["quantization_config"]["format"] = "int-quantized".into();
    let refused = |config: &Value, tensors: &[(&str, Dtype, &[usize])]| storage(config, tensors).unwrap_err();
    insta::assert_snapshot!(
        [
            refused(&gptq, &[("qweight", I32, &[8, 32]), ("qzeros", I32, &[2, 32]), ("scales", F16, &[2, 32])]),
            refused(&gptq, &[("qweight", I32, &[8, 32]), ("qzeros", F16, &[2, 4]), ("scales", F16, &[2, 32])]),
            refused(
                &torchao,
                &[
                    ("_weight_qdata", I8, &[32, 64]),
                    ("_weight_scale", F32, &[32, 2]),
                    ("_weight_zero_point", I32, &[32, 2])
                ]
            ),
            refused(
                &packed,
                &[
                    ("weight_packed", I32, &[32, 8]),
                    ("weight_scale", BF16, &[32, 2]),
                    ("weight_zero_point", I8, &[32, 2])
                ]
            ),
            refused(
                &integers,
                &[
                    ("weight", I8, &[32, 64]),
                    ("weight_scale", BF16, &[32, 2]),
                    ("weight_zero_point", I32, &[32, 2])
                ]
            ),
        ]
        .join("\n"),
        @r"
    a.qzeros: shape [2, 32], expected [2, 4]
    a.qzeros: dtype F16, expected I32
    a._weight_zero_point: dtype I32, expected I8
    a.weight_zero_point: shape [32, 2], expected [4, 2]
    a.weight_zero_point: dtype I32, expected I8
    "
    );
}

#[test]
fn an_order_counts_whatever_the_config_says() {
    let tensors: [(&str, Dtype, &[usize]); 4] = [
        ("qweight", I32, &[8, 32]),
        ("qzeros", I32, &[2, 4]),
        ("scales", F16, &[2, 32]),
        ("g_idx", I32, &[64]),
    ];
    let config = json!({ "quantization_config": { "quant_method": "gptq", "bits": 4, "group_size": 32 } });
    let order = |group: fn(usize) -> i32| {
        let bytes: Vec<u8> = (0..64).flat_map(|column| group(column).to_le_bytes()).collect();
        storage_with(&config, &tensors, &[("g_idx", &bytes)]).map(|storage| storage.order)
    };
    assert_eq!(order(|column| column as i32 / 32), Ok(None));
    assert_eq!(order(|column| column as i32 % 2).unwrap().unwrap()[..3], [0, 1, 0]);
    assert_eq!(order(|_| 2).unwrap_err(), "a.g_idx: group 2 of column 0, expected 0 to 1");
}

#[test]
fn layouts_of_gpus_are_refused() {
    let tensors: [(&str, Dtype, &[usize]); 3] =
        [("weight", I8, &[32, 64]), ("SCB", F32, &[32]), ("weight_format", U8, &[])];
    let config = json!({ "quantization_config": { "quant_method": "bitsandbytes", "load_in_8bit": true } });
    let with = |contents| storage_with(&config, &tensors, contents);
    with(&[("weight_format", &[0])]).unwrap();
    let refused = |contents| with(contents).unwrap_err();
    assert_eq!(
        refused(&[("weight_format", &[2])]),
        "a.weight_format: the layout 2, expected 0, which is row by row"
    );
    assert_eq!(refused(&[]), "a.weight_format: the layout unknown, expected 0, which is row by row");
}

#[test]
fn a_state_that_is_no_json_is_refused() {
    let config = json!({ "quantization_config": {
        "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4" } });
    let state = "weight.quant_state.bitsandbytes__nf4";
    let tensors: [(&str, Dtype, &[usize]); 2] = [("weight.absmax", F32, &[16]), (state, U8, &[1])];
    let refused = storage_with(&config, &tensors, &[(state, b"x")]).unwrap_err();
    assert!(refused.starts_with(&format!("a.{state}: no JSON: expected value")), "{refused}");
}

#[test]
fn numbers_of_4_bits_are_those_of_a_type_only_if_all_are() {
    let config = json!({ "quantization_config": {
        "quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4" } });
    let state = "weight.quant_state.bitsandbytes__nf4";
    let with = |dtype, numbers: &[f32], block: usize| {
        let shapes: [(&str, Dtype, &[usize]); 4] = [
            ("weight", U8, &[1024, 1]),
            ("weight.absmax", F32, &[2048 / block]),
            ("weight.quant_map", dtype, &[16]),
            (state, U8, &[1]),
        ];
        let json = format!(r#"{{"blocksize": {block}, "shape": [32, 64]}}"#);
        let bytes: Vec<_> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let contents = [(state, json.as_bytes()), ("weight.quant_map", bytes.as_slice())];
        storage_with(&config, &shapes, &contents).unwrap()
    };
    let known = FloatCodes::Nf4.numbers();
    let found = with(F32, &known, 64);
    assert_eq!((found.coding.unwrap().float_codes(), found.tensors.len()), (Some(FloatCodes::Nf4), 2));
    let mut other = known.clone();
    other[3] += 1e-6;
    // Others are read from the checkpoint, and so are numbers of another type.
    for found in [with(F32, &other, 64), with(F32, &known[..15], 64), with(F16, &known, 64)] {
        assert_eq!((found.coding.unwrap().float_codes(), found.tensors.len()), (None, 3));
    }
    // Blocks of two rows are of no matrix.
    let wide = with(F32, &known, 128).coding.unwrap();
    assert_eq!(wide.group, [1, 128]);
    assert!(format!("{:?}", wide.codes).contains("[1, 2048]"));
}
