"""Rows 1 to 12 of the numerics table: checks, and controls that must miss.

Out: `checks()` and `controls()` give (row, what came out, what must come out); a control is a known mistake.
"""

import advantages as adv

GAP = {"values": [0.1, 0.2, 999.0, 0.4, 0.5], "mask": [1, 1, 0, 1, 1], "rewards": [0, 0, 0, 0, 1]}
GAP_OUT = [0.782324, 0.727618, 0, 0.56525, 0.5]
HALVES = [0.5] * 4
LAST = [0, 0, 0, 1]
CUT = [0.5, 0.6, 0.7]
RISING = [0.2, 0.4, 0.6, 0.8]
RISING_OUT = [0.741975, 0.5705, 0.39, 0.2]


def gae(rewards, values, lam, mask=None, gamma=1.0, bootstrap=0.0):
    return adv.gae(rewards, values, mask or [1] * len(values), gamma, lam, bootstrap)


def targets(lam):
    return adv.value_targets(LAST, RISING, [1] * 4, 1.0, lam, 0.0)


def drop_empty(rewards):
    return [r for r in rewards if r is not None]


def gae_checks():
    yield "1", gae(LAST, HALVES, 1.0), HALVES
    yield "1b", gae(LAST, HALVES, 0.95), [0.428687, 0.45125, 0.475, 0.5]
    yield "1c", gae([0, 0, 5], [1, 2, 3], 0.0), [1, 1, 2]
    yield "2", gae(GAP["rewards"], GAP["values"], 0.95, GAP["mask"], 0.99), GAP_OUT
    cut_out = gae([0, 0, 0, 1], [0.1, 0.2, 0.4, 0.5], 0.95, gamma=0.99)
    yield "2 with the gap cut out", cut_out, GAP_OUT[:2] + GAP_OUT[3:]
    yield "3", gae([0, 1, 0], [0, 0, 100], 0.95, [1, 1, 0]), [0.95, 1, 0]
    mask = [1, 1, 0]
    yield "4", gae(adv.token_rewards(mask, 1.0), [0.3, 0.4, 0.9], 0.95, mask), [0.67, 0.6, 0]
    yield "5", gae([0, 0, 0], CUT, 0.95, bootstrap=0.8), [0.28525, 0.195, 0.1]
    yield "5b", gae([0, 0, 0], CUT, 0.95), [-0.43675, -0.565, -0.7]


def target_checks():
    yield "6 policy", gae(LAST, RISING, 0.95), RISING_OUT
    yield "6 critic", targets(1.0), [1, 1, 1, 1]
    for length, lam in ((20, 0.0), (200, 0.9), (4000, 0.995)):
        yield f"7 at {length}", [adv.adaptive_lambda({"adaptive": 0.05}, length)], [lam]
    yield "7 never below 0", [adv.adaptive_lambda({"adaptive": 0.05}, 3)], [0]
    yield "7 fixed", [adv.adaptive_lambda(0.95, 3)], [0.95]
    yield "8", targets(0.95), [a + v for a, v in zip(RISING_OUT, RISING)]


def whole_batch_checks():
    yield "9", adv.whiten([[1, 2, 3, 100]], [[1, 1, 1, 0]])[0], [-1, 0, 1, 0]
    yield "9 over rows", sum(adv.whiten([[1], [2, 100], [3]], [[1], [1, 0], [1]]), []), [-1, 0, 0, 1]
    yield "9 below two tokens", adv.whiten([[7, 100]], [[1, 0]])[0], [7, 100]
    yield "10", adv.group_relative([1, 0, 0, 0], 1e-6), [1.5, -0.5, -0.5, -0.5]
    yield "10 group of one", adv.group_relative([1], 1e-6), [0]
    yield "10 equal rewards", adv.group_relative([0.1] * 3, 1e-6), [0, 0, 0]
    yield "10b", adv.group_relative([1.0, 1.00001], 1e-6), [-(0.5**0.5), 0.5**0.5]
    yield "10b at the floor", adv.group_relative([1.0, 1.00001], 1e-3), [-0.005, 0.005]
    yield "11", adv.leave_one_out([1, 0, 0, 0]), [1, -1 / 3, -1 / 3, -1 / 3]
    yield "11 group of one", adv.leave_one_out([1]), [0]
    yield "12 mean", [adv.mean_and_std(drop_empty([1, 3, 2, None]))[0]], [2]
    yield "12 grpo", drop_empty(adv.group_relative([1, 3, 2, None], 1e-6)), [-1, 1, 0]
    yield "12 rloo", drop_empty(adv.leave_one_out([1, 3, 2, None])), [-1.5, 1.5, 0]
    yield "12 one left", drop_empty(adv.group_relative([3, None], 1e-6)), [0]


def checks():
    yield from gae_checks()
    yield from target_checks()
    yield from whole_batch_checks()


def controls():
    yield "1b with lambda 1", gae(LAST, HALVES, 1.0), [0.428687, 0.45125, 0.475, 0.5]
    yield "2 with the gap as a step", gae(GAP["rewards"], GAP["values"], 0.95, gamma=0.99), GAP_OUT
    yield "3 with the masked value behind", gae([0, 1, 0], [0, 0, 100], 0.95, [1, 1, 0], bootstrap=100), [0.95, 1, 0]
    yield "4 with the reward on the tool's token", gae([0, 0, 1], [0.3, 0.4, 0.9], 0.95, [1, 1, 0]), [0.67, 0.6, 0]
    yield "5 as if finished", gae([0, 0, 0], CUT, 0.95), [0.28525, 0.195, 0.1]
    yield "6 with the policy's lambda", targets(0.95), [1, 1, 1, 1]
    yield "7 without the scale", [adv.adaptive_lambda({"adaptive": 1.0}, 200)], [0.9]
    white = adv.whiten([gae(LAST, RISING, 1.0)], [[1] * 4])[0]
    yield "8 after whitening", [a + v for a, v in zip(white, RISING)], targets(1.0)
    yield "9 without the mask", adv.whiten([[1, 2, 3, 100]], [[1] * 4])[0], [-1, 0, 1, 0]
    by_row = [a for row in ([1, 2], [3, 5]) for a in adv.whiten([row], [[1, 1]])[0]]
    yield "9 by row", by_row, sum(adv.whiten([[1, 2], [3, 5]], [[1, 1], [1, 1]]), [])
    population = [x * (4 / 3) ** 0.5 for x in adv.group_relative([1, 0, 0, 0], 1e-6)]
    yield "10 with the population's std", population, [1.5, -0.5, -0.5, -0.5]
    yield "11 with the group's mean", [0.75, -0.25, -0.25, -0.25], adv.leave_one_out([1, 0, 0, 0])
    yield "12 with the failed row as 0", adv.group_relative([1, 3, 2, 0], 1e-6)[:3], [-1, 1, 0]
