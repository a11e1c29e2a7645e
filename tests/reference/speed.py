"""The plain step of a trainer that is not ours, for its time: `speed.py CASE_FOLDER [--threads N]`.

In: case.json as `jobs/train/examples/step.rs` writes it (model folder, rows of tokens, masks, log-probs). Does what a
script with transformers does: rows padded to the longest of a micro-batch, log_softmax over all positions, clipped policy
loss, backward, clipping, torch.optim.AdamW. Out: seconds and tokens/s of the second round, and the peak memory.
"""

import argparse
import json
import pathlib
import resource
import time

import torch
import transformers

MICRO_ROWS = 4


def micro_step(model, rows, count):
    longest = max(len(row["tokens"]) for row in rows)
    pad = lambda values, fill: values + [fill] * (longest - len(values))  # noqa: E731
    ids = torch.tensor([pad(row["tokens"], 0) for row in rows])
    attend = torch.tensor([pad([1] * len(row["tokens"]), 0) for row in rows])
    mask = torch.tensor([pad(row["trainable"], False) for row in rows])[:, 1:]
    old = torch.tensor([pad(row["log_probs"], 0.0) for row in rows])[:, 1:]
    logits = model(input_ids=ids, attention_mask=attend).logits[:, :-1]
    log_probs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
    ratio = (log_probs - old).clamp(-20, 20).exp()
    advantage = 0.5
    losses = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.28) * advantage)
    (losses[mask].sum() / count).backward()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    case = json.loads((args.case / "case.json").read_text())
    model = transformers.AutoModelForCausalLM.from_pretrained(case["model"], dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, weight_decay=0.0)
    rows = case["batch"]
    count = sum(sum(row["trainable"]) for row in rows)
    for number in (1, 2):
        began = time.monotonic()
        for at in range(0, len(rows), MICRO_ROWS):
            micro_step(model, rows[at : at + MICRO_ROWS], count)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seconds = time.monotonic() - began
        tokens = sum(len(row["tokens"]) for row in rows)
        print(f"round {number}: {seconds:.2f} s, {tokens / seconds:.0f} tokens/s")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss} kB")


if __name__ == "__main__":
    main()
