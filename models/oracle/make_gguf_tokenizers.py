#!/usr/bin/env python3
"""Makes gguf_tokenizers/: metadata of GGUF files by llama.cpp's converter, with the ids that the original tokenizers give.

    LLAMA_CPP=llama.cpp gguf/bin/python models/oracle/make_gguf_tokenizers.py

A tokenizer is trained on the demo's texts and has the parts that tokenizers of its kind have on the hub. Training does not
split texts, so that tokens cross words, and every other way to split gives some text other ids. The converter knows kinds by
the ids that they give to a text, so it is told the kind.
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
BYTE_LEVEL_VOCAB = 768
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
HARD_TEXTS = [
    "1234567 12,345.67 0x1F 3rd 1st", "١٢٣٤٥ ½¾² x²y m³ Ⅻ ⑳", "one\r\ntwo\r\n\r\nthree\r", "  \n  x\n\n\ty   \n", "   three   spaces   ",
    "don't DON'T we'll WE'LL I'm it’s o'clock 'tis", "東京タワーへ行きます。カタカナ、ひらがな!", "한국어 문장입니다. ㄱㄴㄷ", "Приют для ёжиков — Ω ΐ Ώ",
    "עברית ভাষা ไทย አማርኛ", "👩‍👩‍👧‍👦🏳️‍🌈 :-) ¯\\_(ツ)_/¯", "a_b__c--d==e!=f&&g||h;;{[(<>)]}", "foo.bar(baz)->qux::<T>() // then x += 1;",
    "«guillemets» “quotes” ‘single’ … —", "\u00a0nbsp\u2003em\u3000ideographic", "cafe\u0301 ﬁne ＡＢＣ１２３！？", "$100 €20 £5 ¥1000 ± × ÷ ^ ` ~",
    "#include <stdio.h>\n\nint main() {\n\treturn 0;\n}\n", "e\u0301e\u0302 \u0e33\u0e49 \u1112\u1161\u11ab", "ǅ ǈ ǋ ᾈ ﷺ", "end!!\n\n\nnext?\r\n(x)\n",
]  # fmt: skip

CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = transformers.models.qwen2.tokenization_qwen2.PRETOKENIZE_REGEX
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])  # fmt: skip
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
SEED = CL100K.replace("{1,3}", "{1}").replace(r" ?[^\s\p{L}\p{N}]+[\r\n]*", r" ?[^\s\p{L}\p{N}\r\n]+")
# DeepSeek's letters with an upper and a lower case: first and last code points of ranges.
CASED = (
    "41-5a 61-7a b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376 377 37b-37d 37f 386 388-38a 38c 38e-3a1 3a3-3f5 "
    "3f7-481 48a-52f 531-556 10a0-10c5 13a0-13f5 13f8-13fd 1c90-1cba 1cbd-1cbf 1d00-1d2b 1d6b-1d77 1d79-1d9a 1e00-1f15 "
    "1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 "
    "1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2102 2107 210a-2113 2115 2119-211d 2124 2126 2128 212a-212d 212f-2134 2139 "
    "213c-213f 2145-2149 214e 2183 2184 2c00-2c7b 2c7e-2ce4 2ceb-2cee 2cf2 2cf3 a640-a66d a680-a69b a722-a76f a771-a787 "
    "a78b-a78e ab70-abbf fb00-fb06 fb13-fb17 ff21-ff3a ff41-ff5a 10400-1044f 104b0-104d3 104d8-104fb 10c80-10cb2 10cc0-10cf2 "
    "118a0-118df 1e900-1e943"
)
CASED = "".join("-".join(chr(int(end, 16)) for end in pair.split("-")) for pair in CASED.split())
EAST_ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"


SINGLE_DIGITS = pre_tokenizers.Digits(individual_digits=True)


def split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


def regex(*patterns, then=()):
    bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*map(split, patterns), *then, bytes])


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
DIGITS = pre_tokenizers.Sequence([SINGLE_DIGITS, GPT2])
FALCON = pre_tokenizers.Sequence([
    pre_tokenizers.Punctuation("contiguous"), GPT2, pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]"),
])  # fmt: skip
DEEPSEEK_LLM = regex(
    "[\r\n]", rf"\s?[{CASED}]+", r"\s?[!-/:-~" + "\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$", EAST_ASIAN,
    then=[SINGLE_DIGITS],
)  # fmt: skip
DEEPSEEK_CODER = regex("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", EAST_ASIAN, then=[SINGLE_DIGITS])
DEEPSEEK_V3 = regex(
    r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
)  # fmt: skip
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
    "smaug-bpe": (regex(CL100K), None, True, False),
    "glm4": (regex(CL100K), None, False, False),
    "stablelm2": (regex(QWEN2), normalizers.NFC(), False, False),
    "seed-coder": (regex(SEED), None, False, True),
    "falcon": (FALCON, None, False, False),
    "deepseek-llm": (DEEPSEEK_LLM, normalizers.Sequence([]), False, True),
    "deepseek-coder": (DEEPSEEK_CODER, normalizers.Sequence([]), False, True),
    "deepseek-v3": (DEEPSEEK_V3, normalizers.Sequence([]), False, True),
}
# Kinds that split as another one does.
ALIKE = [{"llama-bpe", "dbrx", "smaug-bpe", "glm4"}, {"qwen2", "stablelm2"}]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]


def corpus():
    return [(HERE.parent / "demo/held_out.txt").read_text(), *TEXTS]


def check_splits(kind, tokenizer):
    """Asserts that the ways of all other kinds to split and to normalize give some text other ids."""
    find = lambda: [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS + HARD_TEXTS]
    own, parts = find(), (tokenizer.pre_tokenizer, tokenizer.normalizer)
    for other, (splits, normalizer, *_) in KINDS.items():
        if other != kind and not any({kind, other} <= alike for alike in ALIKE):
            tokenizer.pre_tokenizer, tokenizer.normalizer = splits, normalizer or normalizers.Sequence([])
            assert find() != own, f"{kind}: the splits of {other} change nothing"
    tokenizer.pre_tokenizer = parts[0]
    tokenizer.normalizer = parts[1] or normalizers.Sequence([])


def byte_level(kind):
    splits, normalizer, keeps_words, begins = KINDS[kind]
    tokenizer = Tokenizer(models.BPE(ignore_merges=keeps_words))
    tokenizer.pre_tokenizer, tokenizer.decoder = regex(), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=BYTE_LEVEL_VOCAB, initial_alphabet=alphabet, show_progress=False)
    texts = [text[start : start + 2000] for text in corpus() for start in range(0, len(text), 2000)]
    tokenizer.train_from_iterator(texts + HARD_TEXTS * 5, trainer)
    tokenizer.pre_tokenizer = splits
    if normalizer:
        tokenizer.normalizer = normalizer
    check_splits(kind, tokenizer)
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
    texts = [{"text": text, "ids": encode(text, False), "with_special": encode(text, True)} for text in TEXTS + HARD_TEXTS]
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
