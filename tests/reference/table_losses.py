"""Rows 13 to 23 of the numerics table: checks, and controls that must miss.

Out: `checks()` and `controls()` give (row, what came out, what must come out); a control is a known mistake.
"""

import math

import torch

import losses
from advantages import explained_variance
from model import log_distribution, token_log_probs

TRUNCATED = {"kind": "truncated", "cap": 2.0, "level": "token"}
SEQUENCE = {"kind": "truncated", "cap": 5.0, "level": "sequence"}
BAND = {"kind": "band", "min": 0.2, "max": 4.0}
ROWS = [torch.full((2,), 1.0), torch.full((8,), 3.0)]
MODES = {"token-mean": 2.6, "seq-mean-token-mean": 2.0, "seq-mean-token-sum": 13.0}
LOGITS = torch.tensor([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0]])
REFERENCE = torch.log_softmax(torch.tensor([0.0, 1.0, -0.5], dtype=torch.float64), dim=0)


def surrogate(rho, advantage, dual_clip=None):
    log_ratio = torch.tensor([rho], dtype=torch.float64).log()
    zero = torch.zeros(1, dtype=torch.float64)
    return losses.policy_loss(log_ratio, zero, torch.tensor([advantage]).double(), 0.2, 0.28, dual_clip).tolist()


def value(now, old=0.2, returns=0.9, clip=0.2):
    return losses.value_loss(*(torch.tensor([x]) for x in (now, old, returns)), clip).tolist()


def divergences(log_prob, reference):
    inputs = torch.tensor(log_prob), torch.tensor(reference)
    return [f(*inputs).item() for f in (losses.kl_k1, losses.kl_k2, losses.kl_k3)]


def expected_gradient(term):
    """The gradient of a per-token term, averaged over tokens drawn from the policy itself."""
    logits = torch.tensor([1.0, -0.3, 0.2], dtype=torch.float64, requires_grad=True)
    log_probs = torch.log_softmax(logits, dim=0)
    drawn = log_probs.detach().exp()
    return torch.autograd.grad((drawn * term(log_probs)).sum(), logits)[0].tolist()


def kl_gradient():
    """The gradient of KL(policy, reference) itself, where it is a sum over all tokens."""
    logits = torch.tensor([1.0, -0.3, 0.2], dtype=torch.float64, requires_grad=True)
    log_probs = torch.log_softmax(logits, dim=0)
    return torch.autograd.grad((log_probs.exp() * (log_probs - REFERENCE)).sum(), logits)[0].tolist()


def as_loss(kind):
    return expected_gradient(lambda log_probs: losses.kl_loss(kind, log_probs, log_probs.detach(), REFERENCE))


def micro_batches(mode, tokens, sequences):
    """Row 17 split per row: the gradient by a common scale of all losses, summed over backward passes."""
    scale = torch.ones(1, requires_grad=True)
    for row, own_tokens, own_sequences in zip(ROWS, tokens, sequences):
        losses.row_share(row * scale, mode, own_tokens, own_sequences).backward()
    return scale.grad.tolist()


def masked(select):
    """Loss and gradient of a row whose masked token has a log-ratio of 1000."""
    log_probs = torch.tensor([-1.0, 999.0], requires_grad=True)
    mask = torch.tensor([True, False])
    loss = select(log_probs, torch.tensor([-1.0, -1.0]), mask)
    return [loss.item(), *torch.autograd.grad(loss, log_probs)[0].tolist()]


def selecting(log_probs, old, mask):
    return losses.policy_loss(log_probs[mask], old[mask], torch.ones(1), 0.2, 0.28).sum()


def multiplying(log_probs, old, mask):
    return ((log_probs - old).exp() * -mask.float()).sum()


def weights(settings, *ratios):
    log_ratios = torch.tensor(ratios, dtype=torch.float64).log()
    return losses.off_policy_weight(settings, log_ratios, torch.zeros_like(log_ratios)).tolist()


def clip_checks():
    yield "13", surrogate(1.5, 1.0), [-1.28]
    yield "13b", surrogate(0.5, -1.0), [0.8]
    yield "13c", surrogate(5.0, -1.0, 3.0), [3]
    yield "13c without", surrogate(5.0, -1.0), [5]
    yield "13c not where A > 0", surrogate(0.5, 1.0, 3.0), [-0.5]
    yield "13 bound", [losses.ratio(torch.tensor(0.0), torch.tensor(1000.0)).item() * 1e9], [math.exp(-20) * 1e9]
    yield "14", value(0.5) + value(0.1), [0.125, 0.32]
    yield "14 without", value(0.5, clip=None), [0.08]


def kl_checks():
    yield "15", divergences(-1.0, -1.2), [0.2, 0.02, 0.018731]
    yield "15b", divergences(-1.0, -3.0), [2, 2, 1.135335]
    yield "16 k1", expected_gradient(lambda log_probs: losses.kl_k1(log_probs, REFERENCE)), [0, 0, 0]
    yield "16 k2", as_loss("loss_k2"), kl_gradient()
    yield "16 k3", as_loss("loss_k3"), kl_gradient()
    yield "16 sign", [float(kl_gradient()[0] > 0), float(kl_gradient()[1] < 0)], [1, 1]


def batch_checks():
    for mode, want in MODES.items():
        yield f"17 {mode}", [losses.aggregate(ROWS, mode).item()], [want]
        yield f"18 {mode}", micro_batches(mode, [10, 10], [2, 2]), [want]
    tokens = torch.tensor([0, 0, 1])
    probabilities = [torch.softmax(LOGITS / 0.5, dim=1)[i, t].item() for i, t in enumerate([0, 1])]
    yield "19 sampler", token_log_probs(LOGITS[[0, 1, 1]], tokens, 0.5).exp().tolist()[1:], probabilities
    entropy = -sum(p * math.log(p) for p in torch.softmax(LOGITS[0] / 0.5, dim=0).tolist())
    spread = log_distribution(LOGITS, 0.5)[0]
    yield "19 entropy", [-(spread.exp() * spread).sum().item()], [entropy]
    yield "20", masked(selecting), [-1, -1, 0]
    yield "21 band", weights(BAND, 5.0, 0.1, 3.0), [0, 0, 3]
    yield "21 cap", weights(TRUNCATED, 5.0, 0.1), [2, 0.1]
    yield "22", weights(SEQUENCE, *[math.exp(0.012)] * 100), [3.320117] * 100
    yield "22 cap", weights(SEQUENCE, *[math.exp(0.5)] * 100), [5] * 100
    yield "23", [explained_variance([1, 0, 1, 0], [0.8, 0.3, 0.6, 0.1])], [0.71]


def checks():
    yield from clip_checks()
    yield from kl_checks()
    yield from batch_checks()


def controls():
    yield "13 with .2 on both sides", [-1.2], surrogate(1.5, 1.0)
    yield "13c without the dual clip", surrogate(5.0, -1.0), [3]
    yield "14 without the clip", value(0.5, clip=None) + value(0.1, clip=None), [0.125, 0.32]
    yield "15 with the ratio turned round", divergences(-1.2, -1.0)[2:], [0.018731]
    yield "16 k1 as a loss", expected_gradient(lambda log_probs: losses.kl_k1(log_probs, REFERENCE)), kl_gradient()
    yield "16 k3 unweighted", expected_gradient(lambda log_probs: losses.kl_k3(log_probs, REFERENCE)), kl_gradient()
    yield "17 with another name", [losses.aggregate(ROWS, "seq-mean-token-mean").item()], [2.6]
    yield "18 by each part's own count", micro_batches("token-mean", [2, 8], [1, 1]), [2.6]
    divided = (LOGITS.log_softmax(1) / 0.5)[0].tolist()
    yield "19 the log-probs divided", divided, log_distribution(LOGITS, 0.5)[0].tolist()
    yield "20 by multiplying", masked(multiplying), [-1, -1, 0]
    yield "21 capped instead of dropped", weights({**TRUNCATED, "cap": 4.0}, 5.0, 0.1), weights(BAND, 5.0, 0.1)
    yield "22 per token", weights({**SEQUENCE, "level": "token"}, *[math.exp(0.012)] * 100), [3.320117] * 100
    yield "23 against the values' variance", [explained_variance([0.8, 0.3, 0.6, 0.1], [1, 0, 1, 0])], [0.71]
