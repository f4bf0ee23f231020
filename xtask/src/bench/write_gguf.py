"""Writes a Llama checkpoint of Hugging Face as a GGUF file in bf16, with its tokenizer if that is a byte-level BPE.

    python3 write_gguf.py FOLDER OUT.gguf

Matrices keep their bf16 bits. Norms become f32, as llama.cpp requires. Without a vocabulary only llama-bench runs the file.
What it cannot express is refused, so that no model with less than the checkpoint has is measured.
"""

import json
import math
import sys
from pathlib import Path

import gguf
import numpy

MATRICES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"}


def require(condition, message):
    if not condition:
        sys.exit(f"write_gguf.py: {message}")


def check(config, header):
    """Refuses options that would be left out."""
    expected = {"model_type": "llama", "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
    for name, value in expected.items():
        found = config.get(name, value if name != "model_type" else None)
        require(found == value, f"found {name} {found} in config.json, expected {value}")
    is_tied = config.get("tie_word_embeddings", False)
    require(is_tied or "lm_head.weight" in header, "found no lm_head.weight, expected it without tie_word_embeddings")


def rope_factors(rope, size):
    """Returns what llama.cpp divides frequencies by, as `rope_freqs.weight`; None if it divides by nothing."""
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if kind == "default":
        return None
    require(kind == "llama3", f"found rope_type {kind} in config.json, expected default or llama3")
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    factor, context = rope["factor"], rope["original_max_position_embeddings"]
    factors = []
    for index in range(0, size, 2):
        wave = 2 * math.pi * rope["rope_theta"] ** (index / size)
        share = min(max((context / wave - low) / (high - low), 0.0), 1.0)
        factors.append(1 / ((1 - share) / factor + share))
    return numpy.array(factors, numpy.float32)


def write_tokenizer(writer, folder, config):
    file = folder / "tokenizer.json"
    if not file.exists():
        writer.add_tokenizer_model("no_vocab")
        return
    tokenizer = json.loads(file.read_text())
    model = tokenizer["model"]
    assert model["type"] == "BPE", f"the tokenizer is {model['type']}, expected BPE"
    names = {id: name for name, id in model["vocab"].items()}
    special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
    names.update((token["id"], token["content"]) for token in tokenizer["added_tokens"])
    size = config["vocab_size"]
    kinds = gguf.TokenType
    kind = lambda id: kinds.CONTROL if id in special else kinds.NORMAL if id in names else kinds.UNUSED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([names.get(id, f"[unused {id}]") for id in range(size)])
    writer.add_token_types([kind(id) for id in range(size)])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(True)


def interleaved(bits, heads):
    """Puts the rows of a query or key projection in the order of llama.cpp's rope, which turns neighbors."""
    rows, columns = bits.shape
    return bits.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def main():
    folder, out = Path(sys.argv[1]), sys.argv[2]
    config = json.loads((folder / "config.json").read_text())
    data = numpy.memmap(folder / "model.safetensors", numpy.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    check(config, header)
    # Older files have the base beside the scaling.
    rope = {"rope_theta": config.get("rope_theta", 10000.0)}
    rope |= config.get("rope_parameters") or config.get("rope_scaling") or {}
    heads = config["num_attention_heads"]

    writer = gguf.GGUFWriter(out, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads", heads))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(rope["rope_theta"])
    head_size = config.get("head_dim") or config["hidden_size"] // heads
    writer.add_rope_dimension_count(head_size)
    if head_size * heads != config["hidden_size"]:
        writer.add_key_length(head_size)
        writer.add_value_length(head_size)
    writer.add_vocab_size(config["vocab_size"])
    write_tokenizer(writer, folder, config)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)

    written = {"__metadata__"}

    def tensor(name):
        require(name in header, f"found no tensor {name}, expected one")
        entry = header[name]
        require(entry["dtype"] == "BF16", f"found {name} in {entry['dtype']}, expected BF16")
        written.add(name)
        begin, end = entry["data_offsets"]
        return data[start + begin : start + end].view(numpy.uint16).reshape(entry["shape"])

    turned = {"attn_q": heads, "attn_k": config.get("num_key_value_heads", heads)}

    def matrix(name, source):
        bits = tensor(source + ".weight")
        if name.split(".")[-1] in turned:
            bits = interleaved(bits, turned[name.split(".")[-1]])
        bits = numpy.ascontiguousarray(bits).view(numpy.uint8)
        writer.add_tensor(name + ".weight", bits, raw_shape=bits.shape, raw_dtype=gguf.GGMLQuantizationType.BF16)

    def norm(name, source):
        wide = tensor(source + ".weight").astype(numpy.uint32) << 16
        writer.add_tensor(name + ".weight", wide.view(numpy.float32))

    matrix("token_embd", "model.embed_tokens")
    norm("output_norm", "model.norm")
    if "lm_head.weight" in header:
        matrix("output", "lm_head")
    for layer in range(config["num_hidden_layers"]):
        for target, source in NORMS.items():
            norm(f"blk.{layer}.{target}", f"model.layers.{layer}.{source}")
        for target, source in MATRICES.items():
            matrix(f"blk.{layer}.{target}", f"model.layers.{layer}.{source}")
    factors = rope_factors(rope, head_size)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors)
    left = sorted(header.keys() - written)
    require(not left, f"found tensors that it does not know: {', '.join(left)}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
