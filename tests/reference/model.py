"""The networks: a causal language model, and a critic that is a trunk with a linear head.

In: Hugging Face folders, and the tokens of one row, which runs alone, without padding. Out: one number per token.
What is said of token t comes from the hidden state at t - 1; the first token has no predecessor and gets 0.
"""

import os

import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForCausalLM
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()


def load(kind, folder):
    options = {"dtype": torch.float32, "attn_implementation": "eager", "local_files_only": True}
    return kind.from_pretrained(folder, **options).eval()


class Policy:
    """A language model whose logits are divided by the sampling temperature."""

    def __init__(self, folder, temperature):
        self.net = load(AutoModelForCausalLM, folder)
        self.temperature = temperature

    def parameters(self):
        """Names as in the file; a tied embedding is one parameter."""
        return dict(self.net.named_parameters())

    def log_probs(self, tokens):
        logits = self.net(input_ids=tokens[None], use_cache=False).logits[0]
        return token_log_probs(logits, tokens, self.temperature)


class Critic:
    """A trunk and a head on its hidden state after the final norm; the trunk's own output layer is no part of it."""

    def __init__(self, folder):
        self.net = load(AutoModel, folder)
        head = load_file(os.path.join(folder, "value_head.safetensors"))
        self.weight = head["value_head.weight"].float().requires_grad_()
        self.bias = head["value_head.bias"].float().requires_grad_()

    def parameters(self):
        named = {f"model.{name}": p for name, p in self.net.named_parameters()}
        return named | {"value_head.weight": self.weight, "value_head.bias": self.bias}

    def heads(self, tokens):
        """The head at every position: entry t is the value behind token t."""
        hidden = self.net(input_ids=tokens[None], use_cache=False).last_hidden_state[0]
        return torch.nn.functional.linear(hidden, self.weight, self.bias)[:, 0]

    def values(self, tokens):
        """The value of each token, and the value behind the last one."""
        heads = self.heads(tokens)
        return torch.cat([heads.new_zeros(1), heads[:-1]]), heads[-1]

    def score(self, tokens):
        return self.heads(tokens)[-1]


def log_distribution(logits, temperature):
    return torch.log_softmax(logits / temperature, dim=-1)


def token_log_probs(logits, tokens, temperature):
    """The log-probability of each token under the logits of the position before it."""
    taken = log_distribution(logits[:-1], temperature).gather(1, tokens[1:, None])[:, 0]
    return torch.cat([taken.new_zeros(1), taken])
