"""What the exercises of notebook 12 try an answer on, and what they look at. `ask` has what they say of it."""

import torch

from course_utils.baselines import RecurrentClassifier

# ---------------------------------------------------------------- 12.1 repair: what the test split chose

def report_probes(generator: torch.Generator) -> list[tuple]:
    """Validation and test accuracies of (settings 6, seeds 3, epochs 7) and (4, 5, 6): settings differ little, the rest is
    chance. In the second each run has two best epochs, equal on the test split too. Then a single run."""
    probes = []
    for shape in ((6, 3, 7), (4, 5, 6), (1, 1, 3)):
        setting = 0.8 + 0.02 * torch.rand(shape[0], 1, 1, generator=generator, dtype=torch.float64)
        validation, test = (setting + 0.1 * torch.rand(shape, generator=generator, dtype=torch.float64) - 0.05
                            for _ in range(2))
        validation[:, :, -1] -= 0.04                    # so that the last epoch is not the best on average
        if shape == (4, 5, 6):
            best = validation.argmax(dim=-1, keepdim=True)
            again = (best + 1) % shape[-1]
            validation.scatter_(-1, again, validation.gather(-1, best))
            test.scatter_(-1, again, test.gather(-1, best))
        probes.append((validation.numpy(), test.numpy()))
    return probes

# ---------------------------------------------------------------- 12.2 the interval of a difference

def _sides(generator: torch.Generator, reviews: int, seeds: tuple[int, int], means: tuple[float, float]) -> list:
    """Which reviews each seed of two models judges rightly: hard reviews are hard for both, and seeds differ."""
    hard = 0.55 * torch.rand(reviews, generator=generator) - 0.27
    sides = []
    for count, mean in zip(seeds, means):
        shifts = torch.linspace(-0.035, 0.035, count)[torch.randperm(count, generator=generator)]
        shifts += 0.015 * torch.rand(count, generator=generator)
        right = torch.rand(count, reviews, generator=generator) < mean + hard + shifts[:, None]
        sides.append(right.double().numpy())
    return sides


def difference_probes(generator: torch.Generator) -> list[tuple]:
    """Three seeds against five on 360 reviews, the first clearly better; four against two on 410, the first worse."""
    factors = (2.2 + 0.3 * torch.rand(1, generator=generator).item(), 2.9 + 0.3 * torch.rand(1, generator=generator).item())
    return [(*_sides(generator, 360, (3, 5), (0.82, 0.66)), factors[0]),
            (*_sides(generator, 410, (4, 2), (0.6, 0.76)), factors[1])]

# ---------------------------------------------------------------- 12.3 Holm

def holm_probes(generator: torch.Generator) -> list[tuple]:
    """p-values between the bars of Holm and of the methods that are taken for it, in random order; then one, two, and one
    that is exactly at its bar."""
    def between(low: float, high: float) -> float:
        return low + (high - low) * (0.2 + 0.6 * torch.rand(1, generator=generator).item())

    bars = {count: 0.05 / count for count in range(1, 8)}
    first = [between(0.001, 0.003), between(bars[7], bars[6]), between(bars[6], bars[5]), between(bars[4], 0.0142),
             between(0.0143, bars[3]), between(0.036, 0.042), between(0.055, 0.09)]
    second = [between(0.013, 0.0195), between(0.1 / 4, 0.1 / 3), between(0.1 / 2, 0.0513), between(0.06, 0.08)]
    third = [between(0.0103, 0.0118), between(0.012, 0.0124), between(0.02, 0.024), between(0.026, 0.048)]
    fourth = [between(0.0172, 0.0245), between(0.3, 0.6), between(0.7, 0.9)]
    fifth = [between(0.001, 0.002), between(0.003, 0.01)]
    sixth = [between(0.0053, 0.008), between(0.021, 0.0245), between(0.0255, 0.0295), between(0.2, 0.4), between(0.5, 0.9)]
    probes = []
    for values, level in ((first, 0.05), (second, 0.1), (third, 0.05), (fourth, 0.05), (fifth, 0.05), (sixth, 0.05)):
        order = torch.randperm(len(values), generator=generator).tolist()
        if sorted(order) == order:                      # else a list that is sorted already would hide mistakes
            order.reverse()
        if values is third:                             # all survive; in this order two would, the largest first none
            order = [1, 0, 3, 2]
        probes.append(([values[i] for i in order], level))
    return [*probes, ([between(0.03, 0.045)], 0.05), ([between(0.055, 0.09)], 0.05), ([0.03125, 0.5], 0.0625)]

# ---------------------------------------------------------------- 12.4 the width of equal parameters

def parameters_of(vocab_size: int, d_model: int, width: int) -> int:
    with torch.device("meta"):                          # shapes alone: no weights are drawn, however large it is
        return sum(parameter.numel() for parameter in RecurrentClassifier(vocab_size, d_model, width).parameters())


def width_probes(generator: torch.Generator) -> list[tuple]:
    """A budget that a width uses up, two that miss the next width by little, one in the middle; the least there is; and
    ten millions."""
    probes = []
    for words, numbers, width, share in ((60, 7, 9, 0.0), (40, 12, 6, 0.8), (150, 5, 14, 0.99), (30, 4, 20, 0.4)):
        words, numbers, width = (n + int(torch.randint(3, (1,), generator=generator)) for n in (words, numbers, width))
        low, high = (parameters_of(words, numbers, width + more) for more in (0, 1))
        probes.append((words, numbers, low + int(share * (high - low))))
    return [*probes, (5, 1, parameters_of(5, 1, 1)), (50, 10, parameters_of(50, 10, 1700) + 5000)]
