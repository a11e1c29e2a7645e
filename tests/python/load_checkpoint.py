"""Loads a checkpoint in transformers and continues a prompt greedily. usage: load_checkpoint.py FOLDER"""

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = sys.argv[1]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
missing = [name for name, p in model.named_parameters() if not torch.isfinite(p).all()]
assert not missing, missing
text = tokenizer.apply_chat_template([{"role": "user", "content": "Say hi."}], add_generation_prompt=True, tokenize=False)
ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
out = model.generate(ids, max_new_tokens=8, do_sample=False)
assert out.shape[1] > ids.shape[1]
print(repr(tokenizer.decode(out[0, ids.shape[1] :])))
