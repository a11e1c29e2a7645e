"""Reference run of the trainer's numerics. usage: main.py CASES_DIR

In: every CASES_DIR/*/case.json (settings, models, batch, minibatches in order). Out, beside each: reference.safetensors
(old, values, advantages, returns, reference over the trainable tokens; first gradients; weight deltas) and
reference.json (losses and gradient norms per step). Formulas: the numerics table; see the modules.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

from advantages import explained_variance
from model import Critic, Policy
from optimiser import AdamW
from prepare import prepare, read_rows, uses_reference
from step import ACTOR_LOSS, CRITIC_LOSS, Trainee

PREPARED = ("old", "values", "advantages", "returns", "reference")


def load_networks(folder, models, config):
    """The networks that the algorithm uses."""
    nets = {}
    if config["algorithm"] in ACTOR_LOSS:
        nets["actor"] = Policy(folder / models["actor"], config["temperature"])
    if config["algorithm"] in CRITIC_LOSS:
        nets["critic"] = Critic(folder / models["critic"])
    if uses_reference(config):
        nets["reference"] = Policy(folder / models["reference"], config["temperature"])
    return nets


def trainees(nets, config):
    """What is trained, each with an optimiser of its own."""
    losses = {"actor": ACTOR_LOSS, "critic": CRITIC_LOSS}
    found = {}
    for part in (part for part in losses if part in nets):
        rate, warmup = config[f"{part}_lr"], config[f"{part}_warmup_steps"]
        optimiser = AdamW(nets[part].parameters(), rate, warmup, config)
        found[part] = Trainee(nets[part], losses[part][config["algorithm"]], optimiser)
    return found


def run_step(step, rows, config, trained):
    """The actor's update, then the critic's (a reward model has one)."""
    report = {}
    if "actor" in trained:
        loss, kl_term, norm = trained["actor"].update([rows[i] for i in step["actor"]], config)
        report |= {"policy_loss": loss, "actor_grad_norm": norm}
        if kl_term is not None:
            report["kl_loss"] = kl_term
    if "critic" in trained:
        batches = step["critic"][:1] if config["algorithm"] == "reward-model" else step["critic"]
        for batch in batches:
            loss, _, norm = trained["critic"].update([rows[i] for i in batch], config)
            report |= {"value_loss": loss, "critic_grad_norm": norm}
    return report


def flat(rows, name):
    """A prepared quantity over the trainable tokens of the batch, None where the algorithm has no such thing."""
    parts = [row.chosen(name) for row in rows if row is not None and name in row.prepared]
    return torch.cat(parts).float() if parts else None


def run_case(folder):
    case = json.loads((folder / "case.json").read_text())
    config = case["config"]
    rows = read_rows(case["batch"], config["algorithm"])
    nets = load_networks(folder, case["models"], config)
    prepare(rows, config, nets)
    prepared = {name: flat(rows, name) for name in PREPARED}
    tensors = {name: tensor for name, tensor in prepared.items() if tensor is not None}
    trained = trainees(nets, config)
    report = {"steps": [run_step(step, rows, config, trained) for step in case["steps"]]}
    if config["algorithm"] == "ppo":
        report["explained_variance"] = explained_variance(tensors["returns"].tolist(), tensors["values"].tolist())
    for part, trainee in trained.items():
        tensors |= {f"{part}.grad.{name}": g for name, g in trainee.first_gradient.items()}
        tensors |= {f"{part}.delta.{name}": d for name, d in trainee.delta().items()}
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "reference.safetensors")
    (folder / "reference.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*/case.json")):
        run_case(path.parent)
        print(path.parent.name)
