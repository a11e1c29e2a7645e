"""Models made and run by transformers, for tests/transformers.rs. usage: peer.py FOLDER [MODEL]

Makes a random model of each case in FOLDER/NAME, with its logits in FOLDER/NAME.safetensors, and the logits of MODEL too where
it is given. Prints {name: folder} as one JSON line. Then, for each folder named on a line of standard input, loads that model
and writes its logits to FOLDER/logits.safetensors.
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config
from transformers.utils import logging

IDS = torch.tensor([[(7 * i * i + i) % 96 for i in range(40)]])
SIZES = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4)
# waves from 6 to 10,000 positions: some below, some above, some between the limits of an original context of 32
STRETCHED = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
STRETCHED["original_max_position_embeddings"] = 32

# name: configuration, whether in shards
CASES = {
    "llama_tied": (LlamaConfig(**SIZES, num_key_value_heads=2, head_dim=12, tie_word_embeddings=True), False),
    "llama3_shards": (LlamaConfig(**SIZES, num_key_value_heads=1, head_dim=16, rope_parameters=STRETCHED), True),
    "qwen2_tied_shards": (Qwen2Config(**SIZES, num_key_value_heads=2, tie_word_embeddings=True), True),
    "qwen2": (Qwen2Config(**SIZES, num_key_value_heads=4), False),
    "qwen3_tied": (Qwen3Config(**SIZES, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True), False),
    "qwen3_shards": (Qwen3Config(**SIZES, num_key_value_heads=1, head_dim=16), True),
}


def randomize(model):
    """Weights of which each changes the logits: transformers starts biases at 0, norms at 1, and matrices near 0."""
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape)
        if name.endswith("norm.weight"):
            noise = 1 + 0.3 * noise
        elif name.endswith(".bias"):
            noise = 0.5 * noise
        else:
            noise = noise / weight.shape[1] ** 0.5
        weight.data.copy_(noise)


def write_logits(model, path):
    with torch.no_grad():
        logits = model.eval()(input_ids=IDS).logits[0]
    save_file({"ids": IDS[0], "logits": logits.float().contiguous()}, path)


def load(folder):
    model, problems = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    problems = {what: list(names) for what, names in problems.items() if names}
    assert not problems, (folder, problems)
    return model


def main(out, real=None):
    logging.disable_progress_bar()
    torch.manual_seed(20)
    folders = {}
    for name, (config, shards) in CASES.items():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        randomize(model)
        folders[name] = os.path.join(out, name)
        model.save_pretrained(folders[name], max_shard_size="20KB" if shards else "5GB")
        write_logits(model, folders[name] + ".safetensors")
    if real:
        folders["real"] = real
        write_logits(load(real), os.path.join(out, "real.safetensors"))
    print(json.dumps(folders), flush=True)
    for line in sys.stdin:
        folder = line.rstrip("\n")
        write_logits(load(folder), os.path.join(folder, "logits.safetensors"))


main(*sys.argv[1:])
