"""The lab's statistics by their definitions, slow and short: every assignment of signs,
every average of a pair, and verdicts as docs/guide/lab.md and lab/DESIGN.md word them."""

import collections
import functools
import itertools
import math
import random
import statistics

NORMAL = statistics.NormalDist()
LEVEL = 0.95


def walsh(values):
    """The averages of all pairs, each value with itself too."""
    return sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])


def hodges_lehmann(values):
    return statistics.median(walsh(values))


@functools.cache
def assignments(ranks):
    """How many of the assignments of signs give each sum of the ranks with a plus."""
    sums = collections.Counter({0: 1})
    for rank in ranks:
        more = collections.Counter({s + rank: n for s, n in sums.items()})
        sums += more
    return sums


def every_assignment(ranks):
    """The same, one by one."""
    return collections.Counter(sum(itertools.compress(ranks, signs)) for signs in itertools.product((0, 1), repeat=len(ranks)))


def doubled_ranks(sizes):
    """Twice the ranks; equal sizes share the mean of theirs."""
    return [sum(2 * (other < size) + (other == size) for other in sizes) + 1 for size in sizes]


def signed_rank_p(values):
    """Wilcoxon's signed-rank test, two-sided and exact, with ties; zeros are left out."""
    values = [v for v in values if v]
    ranks = doubled_ranks([abs(v) for v in values])
    plus = sum(r for r, v in zip(ranks, values) if v > 0)
    smaller = min(plus, sum(ranks) - plus)
    sums = assignments(tuple(sorted(ranks)))
    tail = sum(n for s, n in sums.items() if s <= smaller)
    return min(1.0, 2 * tail / 2 ** len(values))


def signed_rank_interval(values, level=LEVEL):
    """All middles that the test at that level does not reject, and the exact level of the
    test without ties; None when it rejects none. Its answer changes at the averages of
    pairs only."""
    ends = sorted(set(walsh(values)))
    chances = [signed_rank_p([v - (a + b) / 2 for v in values]) for a, b in zip(ends, ends[1:])]
    outside = signed_rank_p([v - (ends[0] - 1) for v in values])
    kept = [i for i, p in enumerate(chances) if p > 1 - level]
    if outside > 1 - level or not kept:
        return None
    sums = assignments(tuple(range(1, len(values) + 1)))
    tails = itertools.accumulate(sums[s] / 2 ** len(values) for s in range(max(sums)))
    return ends[kept[0]], ends[kept[-1] + 1], 1 - 2 * max(t for t in tails if 2 * t <= 1 - level)


def bca_ends(values, seed, resamples, doubt, others):
    """For each end of the bias-corrected and accelerated bootstrap interval the smallest and
    the largest that chance in drawing explains: so many standard errors, of these
    resamples and of those others that the end to be checked is of."""
    chance = random.Random(seed)
    estimate = hodges_lehmann(values)
    draws = sorted(hodges_lehmann(chance.choices(values, k=len(values))) for _ in range(resamples))
    below = (sum(d < estimate for d in draws) + sum(d == estimate for d in draws) / 2) / resamples
    bias = NORMAL.inv_cdf(below)
    without = [hodges_lehmann(values[:i] + values[i + 1 :]) for i in range(len(values))]
    gaps = [statistics.fmean(without) - v for v in without]
    acceleration = sum(g**3 for g in gaps) / (6 * sum(g**2 for g in gaps) ** 1.5)
    error = doubt * math.sqrt(1 / resamples + 1 / others)
    for z in NORMAL.inv_cdf((1 - LEVEL) / 2), NORMAL.inv_cdf((1 + LEVEL) / 2):
        shares = []
        # The bias is an estimate of chance, too: a share near a half, so 1.25 errors wide.
        for b in bias - 1.25 * error, bias + 1.25 * error:
            p = NORMAL.cdf(b + (b + z) / (1 - acceleration * (b + z)))
            shares += [p - error * math.sqrt(p * (1 - p)), p + error * math.sqrt(p * (1 - p))]
        low, high = math.floor(min(shares) * resamples) - 1, math.ceil(max(shares) * resamples)
        yield draws[max(low, 0)], draws[min(high, resamples - 1)]


def holm(chances):
    """Holm's adjustment: the k-th smallest times what is left, never below one before it."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    scaled = [min(1.0, (len(chances) - k) * chances[i]) for k, i in enumerate(order)]
    return {i: max(scaled[: k + 1]) for k, i in enumerate(order)}


def verdict(ratio, margin, higher_is_better):
    """What the interval says of a ratio, (estimate, low, high, pairs), without regard to
    the twin."""
    _, low, high, pairs = ratio
    if pairs < 6 or low is None:
        return "direction only"
    if higher_is_better:
        low, high = 1 / high, 1 / low  # now more is worse
    bound = 1 + margin
    if low > bound:
        return "costs"
    if 1 / bound <= low and high <= bound:
        return "no material cost"
    if high < 1 / bound:
        return "improves"
    return "undecided"


def floor(ratio, margin):
    """The difference that the twin's interval leaves open, at least the margin; None when it
    excludes 1 or there is none."""
    _, low, high, pairs = ratio
    if pairs < 6 or low is None or not low <= 1 <= high:
        return None
    if 1 / (1 + margin) <= low and high <= 1 + margin:
        return margin
    return max(high, 1 / low) - 1


def verdict_over(ratio, margin, noise, higher_is_better):
    """The verdict where differences below noise cannot be told from none."""
    if noise <= margin:
        return verdict(ratio, margin, higher_is_better)
    judged = verdict(ratio, noise, higher_is_better)
    return "undecided" if judged == "no material cost" else judged
