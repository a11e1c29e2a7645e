"""AdamW with decoupled weight decay, gradient clipping by the global norm, linear warm-up.

In: named parameters that hold gradients. Out: the parameters are changed in place. Formulas: Adam (Kingma and Ba
2015, algorithm 1), decoupled decay (Loshchilov and Hutter 2019, algorithm 2; the decay is scaled by the learning
rate), clipping (Pascanu et al. 2013).
"""

import torch


def warmed_up(rate, warmup_steps, done):
    """The learning rate of the update after `done` updates of this network."""
    return rate * min((done + 1) / max(warmup_steps, 1), 1.0)


def clip_scale(gradients, bound):
    """The global norm, and the factor that brings it down to the bound (1 within it, or without a bound)."""
    norm = sum(g.double().square().sum() for g in gradients).sqrt().item()
    return norm, bound / norm if bound and norm > bound else 1.0


class AdamW:
    """The decay falls on every parameter, norms and biases too."""

    def __init__(self, parameters, rate, warmup_steps, config):
        self.parameters = parameters
        self.rate, self.warmup_steps = rate, warmup_steps
        self.betas, self.eps = config["betas"], config["eps"]
        self.weight_decay, self.bound = config["weight_decay"], config["grad_clip"]
        self.done = 0
        self.first = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.second = {name: torch.zeros_like(p) for name, p in parameters.items()}

    @torch.no_grad()
    def step(self, gradients):
        """One update with the gradients, clipped here; gives their norm before clipping."""
        norm, scale = clip_scale(gradients.values(), self.bound)
        rate = warmed_up(self.rate, self.warmup_steps, self.done)
        self.done += 1
        beta1, beta2 = self.betas
        for name, p in self.parameters.items():
            g = gradients[name] * scale
            self.first[name] = beta1 * self.first[name] + (1.0 - beta1) * g
            self.second[name] = beta2 * self.second[name] + (1.0 - beta2) * g * g
            m_hat = self.first[name] / (1.0 - beta1**self.done)
            v_hat = self.second[name] / (1.0 - beta2**self.done)
            p.copy_(p * (1.0 - rate * self.weight_decay) - rate * m_hat / (v_hat.sqrt() + self.eps))
        return norm
