"""What is fixed before the first update: rows, old log-probs, weights, values, advantages, value targets.

In: the parsed case and its networks with their starting weights. Out: one Row per entry of the batch, in its order,
None for an entry that failed for a reason that is not the policy's: such a row takes part in nothing. Tensors are
over all tokens of the row; only the trainable ones mean anything.
"""

from dataclasses import dataclass, field

import torch

from advantages import adaptive_lambda, gae, group_relative, leave_one_out, token_rewards, value_targets, whiten
from losses import off_policy_weight

POLICY_GRADIENT = ("ppo", "grpo", "rloo")


@dataclass
class Row:
    task: str
    tokens: torch.Tensor
    mask: torch.Tensor
    recorded: torch.Tensor | None
    reward: float
    truncated: bool
    prepared: dict = field(default_factory=dict)

    def chosen(self, name):
        """A prepared tensor, the trainable tokens only."""
        return self.prepared[name][self.mask]

    def listed(self, name):
        return self.prepared[name].tolist()


def read_rows(batch, algorithm):
    return [None if entry["reward"] is None else read_row(entry, algorithm) for entry in batch]


def read_row(entry, algorithm):
    mask = entry["trainable"]
    if mask[0] and algorithm != "reward-model":
        raise ValueError("the first token of a row has no predecessor and cannot be trainable")
    recorded = None
    if algorithm in POLICY_GRADIENT:
        recorded = torch.tensor([x if on else 0.0 for x, on in zip(entry["log_probs"], mask, strict=True)])
    tokens, truth = torch.tensor(entry["tokens"]), torch.tensor(mask)
    return Row(entry["task_id"], tokens, truth, recorded, entry["reward"], entry["truncated"])


def uses_reference(config):
    algorithm = config["algorithm"]
    return algorithm == "dpo" or (algorithm in POLICY_GRADIENT and config["kl_coef"] > 0.0)


@torch.no_grad()
def prepare(rows, config, nets):
    """Fills the rows with what the algorithm needs."""
    present = [row for row in rows if row is not None]
    if uses_reference(config):
        for row in present:
            row.prepared["reference"] = nets["reference"].log_probs(row.tokens)
    if config["algorithm"] not in POLICY_GRADIENT:
        return
    for row in present:
        if not row.mask.any():
            raise ValueError("a row without a trainable token has no place for its reward")
        prepare_old(row, config["off_policy"], nets["actor"])
    if config["algorithm"] == "ppo":
        actor_critic(present, config, nets["critic"])
    else:
        grouped(present, config)


def prepare_old(row, off_policy, actor):
    """The recorded log-probs; off policy those of the starting weights, and the weight of each token."""
    row.prepared["old"] = row.recorded
    if off_policy["kind"] != "none":
        row.prepared["old"] = actor.log_probs(row.tokens)
        row.prepared["weight"] = torch.zeros_like(row.recorded)
        row.prepared["weight"][row.mask] = off_policy_weight(off_policy, row.chosen("old"), row.recorded[row.mask])


def rewards_of(row, config):
    mask = row.mask.tolist()
    if config["kl_kind"] == "in_reward" and config["kl_coef"] > 0.0:
        return token_rewards(mask, row.reward, config["kl_coef"], row.listed("old"), row.listed("reference"))
    return token_rewards(mask, row.reward)


def actor_critic(rows, config, critic):
    """GAE with the actor's lambda, targets with the critic's, then whitening over the batch."""
    advantages = []
    for row in rows:
        row.prepared["values"], behind = critic.values(row.tokens)
        mask = row.mask.tolist()
        inputs = (rewards_of(row, config), row.listed("values"), mask, config["gamma"])
        bootstrap = behind.item() if row.truncated else 0.0
        advantages.append(gae(*inputs, adaptive_lambda(config["lambda_actor"], sum(mask)), bootstrap))
        targets = value_targets(*inputs, adaptive_lambda(config["lambda_critic"], sum(mask)), bootstrap)
        row.prepared["returns"] = torch.tensor(targets)
    for row, white in zip(rows, whiten(advantages, [row.mask.tolist() for row in rows])):
        row.prepared["advantages"] = torch.tensor(white)


def grouped(rows, config):
    """One advantage per row, from the rewards of the rows of its task."""
    groups = {}
    for row in rows:
        groups.setdefault(row.task, []).append(row)
    for group in groups.values():
        totals = [sum(rewards_of(row, config)) for row in group]
        if config["algorithm"] == "grpo":
            scores = group_relative(totals, config["group_std_floor"])
        else:
            scores = leave_one_out(totals)
        for row, score in zip(group, scores):
            row.prepared["advantages"] = torch.full(row.tokens.shape, score)
