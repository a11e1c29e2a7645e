"""The losses of a minibatch and the update that follows.

In: prepared rows of one minibatch, the case's settings, a network with its optimiser. Out: the loss and the gradient
norm as numbers, the weights changed in place.
"""

import torch

from losses import aggregate, kl_loss, pair_loss, policy_loss, value_loss


def pairs(rows):
    """(chosen, rejected) from an alternating list; a pair with a failed row takes no part."""
    couples = list(zip(rows[0::2], rows[1::2], strict=True))
    return [(a, b) for a, b in couples if a is not None and b is not None]


def present(rows):
    """The rows that take part: not failed, with a trainable token."""
    return [row for row in rows if row is not None and row.mask.any()]


def sft_loss(rows, config, actor):
    return aggregate([-actor.log_probs(row.tokens)[row.mask] for row in present(rows)], config["aggregation"]), None


def dpo_loss(rows, config, actor):
    def gain(row):
        return actor.log_probs(row.tokens)[row.mask].sum() - row.chosen("reference").sum()

    margins = torch.stack([gain(chosen) - gain(rejected) for chosen, rejected in pairs(rows)])
    return pair_loss(config["dpo_beta"] * margins), None


def policy_gradient_loss(rows, config, actor):
    """The actor's loss, and beside it the part that is the KL term (None without one)."""
    with_kl = config["kl_coef"] > 0.0 and config["kl_kind"] != "in_reward"
    surrogate, divergence = [], []
    for row in present(rows):
        log_probs = actor.log_probs(row.tokens)[row.mask]
        clips = (config["clip_low"], config["clip_high"], config["dual_clip"])
        loss = policy_loss(log_probs, row.chosen("old"), row.chosen("advantages"), *clips)
        surrogate.append(loss * row.chosen("weight") if "weight" in row.prepared else loss)
        if with_kl:
            divergence.append(kl_loss(config["kl_kind"], log_probs, row.chosen("old"), row.chosen("reference")))
    loss = aggregate(surrogate, config["aggregation"])
    if not with_kl:
        return loss, None
    kl_term = config["kl_coef"] * aggregate(divergence, config["aggregation"])
    return loss + kl_term, kl_term


def critic_loss(rows, config, critic):
    losses = []
    for row in present(rows):
        values = critic.values(row.tokens)[0][row.mask]
        losses.append(value_loss(values, row.chosen("values"), row.chosen("returns"), config["value_clip"]))
    return aggregate(losses, config["aggregation"]), None


def reward_model_loss(rows, _config, critic):
    margins = [critic.score(chosen.tokens) - critic.score(rejected.tokens) for chosen, rejected in pairs(rows)]
    return pair_loss(torch.stack(margins)), None


ACTOR_LOSS = {
    "ppo": policy_gradient_loss,
    "grpo": policy_gradient_loss,
    "rloo": policy_gradient_loss,
    "sft": sft_loss,
    "dpo": dpo_loss,
}
CRITIC_LOSS = {"ppo": critic_loss, "reward-model": reward_model_loss}


class Trainee:
    """A network, its loss and its optimiser; keeps the unclipped gradient of its first update."""

    def __init__(self, net, loss, optimiser):
        self.net, self.loss, self.optimiser = net, loss, optimiser
        self.first_gradient = None
        self.start = {name: p.detach().clone() for name, p in net.parameters().items()}

    def update(self, rows, config):
        """One update; gives the loss, its KL term or None, and the gradient norm before clipping."""
        named = self.net.parameters()
        loss, kl_term = self.loss(rows, config, self.net)
        gradients = dict(zip(named, torch.autograd.grad(loss, list(named.values()))))
        if self.first_gradient is None:
            self.first_gradient = gradients
        norm = self.optimiser.step(gradients)
        return loss.item(), None if kl_term is None else kl_term.item(), norm

    def delta(self):
        return {name: p.detach() - self.start[name] for name, p in self.net.parameters().items()}
