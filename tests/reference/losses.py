"""Losses per token, their aggregation, and the weights of off-policy rows.

In: float tensors over the trainable tokens of a row (masked tokens are left out by the caller, never multiplied by
0). Out: tensors of the same shape, or a scalar. Formulas: PPO (Schulman et al. 2017, eq. 7), dual clip (Ye et al.
2020), clip-higher and token-mean (Yu et al. 2025), KL estimators k1 to k3 (Schulman's note), DPO (Rafailov et al.
2023, eq. 7), the pairwise reward-model loss (Ouyang et al. 2022, eq. 1).
"""

import torch
from torch.nn.functional import logsigmoid

LOG_RATIO_BOUND = 20.0


def ratio(new, old):
    """exp of the log-ratio, which is held within +-20."""
    return (new - old).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND).exp()


def policy_loss(log_probs, old, advantages, clip_low, clip_high, dual_clip=None):
    """-min(rho A, clip(rho) A); with a dual clip c, at most -c A where A < 0."""
    rho = ratio(log_probs, old)
    loss = -torch.minimum(rho * advantages, rho.clamp(1.0 - clip_low, 1.0 + clip_high) * advantages)
    if dual_clip:
        loss = torch.where(advantages < 0.0, torch.minimum(loss, -dual_clip * advantages), loss)
    return loss


def value_loss(values, old_values, returns, clip=None):
    """Half the larger of the two squares; the plain square without a clip."""
    square = (values - returns) ** 2
    if clip:
        near = torch.clamp(values, old_values - clip, old_values + clip)
        square = torch.maximum(square, (near - returns) ** 2)
    return 0.5 * square


def kl_k1(log_probs, reference):
    return log_probs - reference


def kl_k2(log_probs, reference):
    return 0.5 * (log_probs - reference) ** 2


def kl_k3(log_probs, reference):
    log_ratio = (reference - log_probs).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    return log_ratio.exp() - 1.0 - log_ratio


def kl_loss(kind, log_probs, old, reference):
    """The KL term of the loss: k2, or k3 times rho, through which the gradient flows too."""
    if kind == "loss_k2":
        return kl_k2(log_probs, reference)
    if kind == "loss_k3":
        return ratio(log_probs, old) * kl_k3(log_probs, reference)
    raise ValueError(f"no KL loss of kind {kind}")


def off_policy_weight(settings, proximal, behaviour):
    """The weight of each token's policy loss; a constant, no gradient flows through it."""
    kind = settings["kind"]
    if kind == "band":
        rho = ratio(proximal, behaviour)
        return torch.where((rho > settings["min"]) & (rho < settings["max"]), rho, torch.zeros_like(rho))
    if kind == "truncated" and settings["level"] == "token":
        return ratio(proximal, behaviour).clamp(max=settings["cap"])
    if kind == "truncated" and settings["level"] == "sequence":
        rho = ratio(proximal.double().sum(), behaviour.double().sum())
        return rho.clamp(max=settings["cap"]).to(proximal.dtype).expand_as(proximal)
    raise ValueError(f"no off-policy weight for {settings}")


def row_share(losses, aggregation, tokens, sequences):
    """What one row adds to the aggregate of a minibatch that has `tokens` and `sequences` in all."""
    if aggregation == "token-mean":
        return losses.sum() / tokens
    if aggregation == "seq-mean-token-mean":
        return losses.mean() / sequences
    if aggregation == "seq-mean-token-sum":
        return losses.sum() / sequences
    raise ValueError(f"no aggregation named {aggregation}")


def aggregate(rows, aggregation):
    """The aggregate of a whole minibatch, one tensor of token losses per row."""
    tokens = sum(row.numel() for row in rows)
    return torch.stack([row_share(row, aggregation, tokens, len(rows)) for row in rows]).sum()


def pair_loss(margins):
    """Mean of -log sigmoid over pairs: of beta times the log-ratio margin (DPO), or of the score margin."""
    return -logsigmoid(margins).mean()
