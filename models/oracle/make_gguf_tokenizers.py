#!/usr/bin/env python3
"""Makes gguf_tokenizers/: metadata of GGUF files by llama.cpp's converter, with the ids that the original tokenizers give.

    LLAMA_CPP=llama.cpp gguf/bin/python models/oracle/make_gguf_tokenizers.py

A tokenizer is trained on the demo's texts, with the parts that tokenizers of its kind have on the hub. The converter knows
kinds by the ids that they give to a text, so it is told the kind.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LLAMA_CPP = Path(os.environ.get("LLAMA_CPP", "llama.cpp"))
sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import conversion
import gguf
import sentencepiece
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

VERSIONS = {"gguf": "0.19.0", "llama-cpp-python": "0.3.36", "transformers": "5.23.0", "sentencepiece": "0.2.1"}
VOCAB = 384
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = [
    "", " ", "   ", "\n", "\t", "\n\n  \n", "Hello, world!", " Hello", "The child's toys weren't there; I'VE SEEN 12345 of them.",
    "a  b   c", "x=1;\n\tif (y) { return z[0]; }\r\n", "Ünïcode und Größe, naïve façade", "e\u0301 and \u00e9", "我想在apple工作1314151天～",
    "🚀 (normal) 😶\u200d🌫️", "CamelCaseWords and snake_case_words /path/to/file", "<|im_start|>user\nHi<|im_end|>\n",
    "<s>one</s> two", "price: $3.50, 3..5, 33333333", "\u2581already", "    indented\n        more", "१२३ ٤٥٦ Ⅷ",
]  # fmt: skip

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = transformers.models.qwen2.tokenization_qwen2.PRETOKENIZE_REGEX
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])  # fmt: skip
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")


def regex(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
DIGITS = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), GPT2])
# Kinds of byte-level tokenizers: how they split texts, normalize them, keep whole words, and begin texts.
KINDS = {
    "gpt-2": (GPT2, None, False, False),
    "olmo": (GPT2, normalizers.NFC(), False, False),
    "starcoder": (DIGITS, None, False, False),
    "command-r": (DIGITS, normalizers.NFC(), False, True),
    "llama-bpe": (regex(CL100K), None, True, True),
    "dbrx": (regex(CL100K), None, False, False),
    "qwen2": (regex(QWEN2), normalizers.NFC(), False, False),
    "gpt-4o": (regex(O200K), None, True, False),
    "tekken": (regex(TEKKEN), None, True, True),
}
SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]


def corpus():
    return [(HERE.parent / "demo/held_out.txt").read_text(), *TEXTS]


def byte_level(kind):
    splits, normalizer, keeps_words, begins = KINDS[kind]
    tokenizer = Tokenizer(models.BPE(ignore_merges=keeps_words))
    tokenizer.pre_tokenizer, tokenizer.decoder = splits, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB - 8, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    if begins:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    return tokenizer


def sentence_piece(folder, prefix):
    (folder / "corpus.txt").write_text("\n".join(corpus()))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "corpus.txt"), model_prefix=str(folder / "tokenizer"), vocab_size=VOCAB + 100, model_type="bpe",
        byte_fallback=True, split_digits=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        add_dummy_prefix=prefix, allow_whitespace_only_pieces=True, character_coverage=0.98, minloglevel=2,
        user_defined_symbols=["▁▁", "▁▁▁▁"] if not prefix else [],
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
    count = pieces.get_piece_size()
    vocab = {pieces.id_to_piece(i): i for i in range(count)}
    scores = {pieces.id_to_piece(i): pieces.get_score(i) for i in range(count)}
    merges = transformers.convert_slow_tokenizer.generate_merges(vocab, scores if prefix else None)
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    steps = [normalizers.Prepend("▁")] if prefix else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
    ends = [decoders.Strip(" ", 1, 0)] if prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *ends]
    )
    tokenizer.add_special_tokens([AddedToken(text, normalized=False) for text in ("<unk>", "<s>", "</s>")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def metadata(folder, kind, prefix):
    """Returns the metadata of the tokenizer that the converter writes."""
    model = conversion.get_model_class("LlamaForCausalLM")
    converter = model(folder, gguf.LlamaFileType.ALL_F32, folder / "model.gguf")
    converter.get_vocab_base_pre = lambda _: kind
    converter.set_vocab()
    if kind == "gemma":
        converter.gguf_writer.add_add_space_prefix(prefix)
    values = {key: value.value for part in converter.gguf_writer.kv_data for key, value in part.items()}
    text = lambda value: value.decode() if isinstance(value, bytes) else value
    values = {key: [text(one) for one in value] if isinstance(value, list) else text(value) for key, value in values.items()}
    return {k: v for k, v in values.items() if k.startswith(("tokenizer.", "general.architecture"))}


def make(kind):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        is_pieces = kind in ("llama", "gemma")
        tokenizer = sentence_piece(folder, kind == "llama") if is_pieces else byte_level(kind)
        count = max(tokenizer.get_vocab().values()) + 1
        config = {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": count + 3, "hidden_size": 32,
            "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
            "max_position_embeddings": 64,
        }  # fmt: skip
        (folder / "config.json").write_text(json.dumps(config))
        begins = is_pieces or KINDS[kind][3]
        fast = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", chat_template=CHATML,
            unk_token="<unk>" if is_pieces else None, add_bos_token=begins,
        )  # fmt: skip
        fast.save_pretrained(folder)
        template = json.loads((folder / "tokenizer_config.json").read_text()) | {"chat_template": CHATML}
        (folder / "tokenizer_config.json").write_text(json.dumps(template | {"add_bos_token": begins}))
        found = metadata(folder, kind, kind == "llama")
    encode = lambda text, special: tokenizer.encode(text, add_special_tokens=special).ids
    texts = [{"text": text, "ids": encode(text, False), "with_special": encode(text, True)} for text in TEXTS]
    for entry in texts:
        entry["decoded"] = tokenizer.decode(entry["ids"])
    (HERE / "gguf_tokenizers" / f"{kind}.json").write_text(
        json.dumps({"metadata": found, "texts": texts}, ensure_ascii=False, separators=(",", ":")) + "\n"
    )
    print(kind, count, found.get("tokenizer.ggml.add_bos_token"), file=sys.stderr)


if __name__ == "__main__":
    (HERE / "gguf_tokenizers").mkdir(exist_ok=True)
    for kind in [*KINDS, "llama", "gemma"]:
        if len(sys.argv) < 2 or kind in sys.argv[1:]:
            make(kind)
