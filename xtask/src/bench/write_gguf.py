"""Writes a Llama checkpoint of Hugging Face as a GGUF file in bf16, with its tokenizer if that is a byte-level BPE.

    python3 write_gguf.py FOLDER OUT.gguf

Matrices keep their bf16 bits. Norms become f32, as llama.cpp requires. Without a vocabulary only llama-bench runs the file.
"""

import json
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
    rope = config.get("rope_parameters") or config
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
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_vocab_size(config["vocab_size"])
    write_tokenizer(writer, folder, config)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)

    def tensor(name):
        entry = header[name]
        assert entry["dtype"] == "BF16", f"{name} is {entry['dtype']}, expected BF16"
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
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
