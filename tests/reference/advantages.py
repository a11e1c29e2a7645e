"""Advantages and value targets, in double precision on plain lists.

In: one number per token of a row (rewards, values, a mask that is true where the policy sampled the token), or one
reward per row of a group, None where the row failed for a reason that is not the policy's. Out: lists of the same
length. Formulas: GAE (Schulman et al. 2016, eq. 16), GRPO (Shao et al. 2024, 4.1.2), RLOO (Ahmadian et al. 2024),
length-adaptive lambda (Yue et al. 2025).
"""

import math

WHITEN_EPS = 1e-8


def adaptive_lambda(setting, length):
    """A number stands for itself; {"adaptive": alpha} gives 1 - 1/max(alpha * length, 1)."""
    if isinstance(setting, dict):
        return 1.0 - 1.0 / max(setting["adaptive"] * length, 1.0)
    return setting


def token_rewards(mask, reward, kl_coef=0.0, old=None, reference=None):
    """-kl_coef * (old - reference) on each trainable token, the terminal reward added on the last of them."""
    steps = [i for i, on in enumerate(mask) if on]
    out = [0.0] * len(mask)
    if kl_coef:
        for i in steps:
            out[i] = -kl_coef * (old[i] - reference[i])
    out[steps[-1]] += reward
    return out


def gae(rewards, values, mask, gamma, lam, bootstrap):
    """One step per trainable token; `bootstrap` is the value behind the last (0 for a finished trajectory)."""
    out = [0.0] * len(mask)
    following, advantage = bootstrap, 0.0
    for i in reversed([i for i, on in enumerate(mask) if on]):
        delta = rewards[i] + gamma * following - values[i]
        advantage = delta + gamma * lam * advantage
        out[i] = advantage
        following = values[i]
    return out


def value_targets(rewards, values, mask, gamma, lam, bootstrap):
    """A(lam) + V on trainable tokens, 0 elsewhere; the advantages are those before whitening."""
    advantages = gae(rewards, values, mask, gamma, lam, bootstrap)
    return [a + v if on else 0.0 for a, v, on in zip(advantages, values, mask)]


def mean_and_std(numbers):
    """Two-pass mean and sample standard deviation; a single number has std 0."""
    mean = math.fsum(numbers) / len(numbers)
    square = math.fsum((x - mean) ** 2 for x in numbers)
    return mean, math.sqrt(square / max(len(numbers) - 1, 1))


def whiten(rows, masks):
    """(A - mean) / (std + 1e-8) with both over all trainable tokens of all rows; unchanged below two tokens."""
    chosen = [a for row, mask in zip(rows, masks) for a, on in zip(row, mask) if on]
    if len(chosen) < 2:
        return rows
    mean, std = mean_and_std(chosen)
    return [[(a - mean) / (std + WHITEN_EPS) if on else 0.0 for a, on in zip(row, m)] for row, m in zip(rows, masks)]


def group_relative(rewards, std_floor):
    """(R - mean) / max(std, std_floor) over the rows that did not fail; a group of one gives 0."""
    present = [r for r in rewards if r is not None]
    if len(present) < 2:
        return [None if r is None else 0.0 for r in rewards]
    mean, std = mean_and_std(present)
    return [None if r is None else (r - mean) / max(std, std_floor) for r in rewards]


def leave_one_out(rewards):
    """R minus the mean of the others that did not fail; a group of one gives 0."""
    present = [r for r in rewards if r is not None]
    if len(present) < 2:
        return [None if r is None else 0.0 for r in rewards]
    total = math.fsum(present)
    return [None if r is None else r - (total - r) / (len(present) - 1) for r in rewards]


def explained_variance(returns, values):
    """1 - Var(R - V) / Var(R); None where the returns do not vary."""
    _, spread = mean_and_std(returns)
    _, error = mean_and_std([r - v for r, v in zip(returns, values)])
    return 1.0 - (error / spread) ** 2 if spread > 0.0 else None
