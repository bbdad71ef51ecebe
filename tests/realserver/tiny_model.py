"""Writes a random Qwen2 of some 300,000 parameters with a tokenizer that knows DeepSeek's markers.

Run by the Python of a server's own environment, as `tiny_model.py FOLDER`. The weights mean
nothing: what the model writes is salad, and every form in it comes from the server's grammar and
parser. Seeded, so that two machines get the same weights. The tokenizer learns its merges from the
reference that Python ships, so that English costs about four characters a token.
"""

from __future__ import annotations

import pydoc_data.topics
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
# SGLang's V4 encoder and parser look these up by name and do not start without them.
MARKERS = (
    BEGIN,
    END,
    "<｜▁pad▁｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜System｜>",
    "<｜latest_reminder｜>",
    "｜DSML｜",
    "<think>",
    "</think>",
    "<｜action｜>",
    "<｜query｜>",
    "<｜authority｜>",
    "<｜domain｜>",
    "<｜title｜>",
    "<｜read_url｜>",
    "<｜image｜>",
)
VOCABULARY = 2048
# For servers that render a template; SGLang encodes DeepSeek's conversations itself.
TEMPLATE = (
    "{% for message in messages %}"
    "<｜{{ 'Assistant' if message.role == 'assistant' else 'User' }}｜>"
    "{{ message.content or '' }}{% endfor %}<｜Assistant｜></think>"
)


def tokenizer() -> PreTrainedTokenizerFast:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(MARKERS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(pydoc_data.topics.topics.values(), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=BEGIN, eos_token=END, pad_token="<｜▁pad▁｜>"
    )
    fast.chat_template = TEMPLATE
    return fast


def model(vocabulary: int, end: int) -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=end,
    )
    return Qwen2ForCausalLM(config).float()


def main(folder: Path) -> None:
    words = tokenizer()
    words.save_pretrained(folder)
    model(len(words), words.eos_token_id).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
