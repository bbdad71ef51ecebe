"""Do launches of one arm differ by more than chance? Then the launch, not the session, is the unit.

Sessions of one launch share a fate. The excess shows in Pearson's chi-square of the launches' rates
around their arm's rate, over its degrees of freedom: 1 when only chance is at work, more when
launches differ. Counts divided by it are the effective number of independent sessions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# What we expect before seeing anything: sessions of one launch correlate by 0.02. That is a
# standard deviation between launches of 0.05 around a rate of 0.15, a figure from real blocks. It
# weighs as much as two degrees of freedom: one more pair of launches than seen.
EXPECTED_CORRELATION = 0.02
EXPECTED_WEIGHT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispersion:
    """Spread of launches over what the binomial allows: `chi_square` on `degrees` of freedom, and
    the mean number of sessions of a launch."""

    chi_square: float
    degrees: int
    sessions_per_launch: float

    @property
    def inflation(self) -> float:
        """Variance over the binomial's, as seen; 1 at least, and 1 where nothing can be seen."""
        return max(1.0, self.chi_square / self.degrees) if self.degrees else 1.0

    @property
    def cautious_inflation(self) -> float:
        """As `inflation`, drawn to what is expected of launches while few have been seen."""
        expected = 1.0 + max(0.0, self.sessions_per_launch - 1.0) * EXPECTED_CORRELATION
        weighed = self.chi_square + EXPECTED_WEIGHT * expected
        return max(1.0, weighed / (self.degrees + EXPECTED_WEIGHT))

    def interval_inflation(self, level: float) -> float:
        """What an interval's counts are divided by: the cautious inflation, and where launches are
        seen to differ, as much again as Student's t is wider than the normal on so few launches.

        Simulated coverage at launches of 0.15 with standard deviation 0.05, 2 to 12 rounds of 10 to
        60 sessions, is 0.949 to 0.963; without the second factor it falls to 0.92.
        """
        if not self.degrees:
            return 1.0
        if self.inflation == 1.0:
            return self.cautious_inflation
        from scipy.special import ndtri, stdtrit

        tail = 1.0 - (1.0 - level) / 2.0
        wider = float(stdtrit(self.degrees + EXPECTED_WEIGHT, tail) / ndtri(tail))
        return self.cautious_inflation * wider**2


def dispersion(arms: Sequence[Sequence[tuple[int, int]]]) -> Dispersion:
    """The spread within each arm, pooled; an arm is its launches' (corrupted, sessions).

    Arms at 0 or 1, and arms of one launch, say nothing of the spread and add no degree of freedom.
    """
    chi_square, degrees, sizes = 0.0, 0, []
    for launches in arms:
        seen = [(k, n) for k, n in launches if n]
        sizes += [n for _, n in seen]
        corrupted, sessions = sum(k for k, _ in seen), sum(n for _, n in seen)
        if len(seen) < 2 or corrupted in (0, sessions):
            continue
        share = corrupted / sessions
        spread = sum((k - share * n) ** 2 / n for k, n in seen)
        chi_square += spread / (share * (1.0 - share))
        degrees += len(seen) - 1
    mean_size = sum(sizes) / len(sizes) if sizes else 0.0
    return Dispersion(chi_square=chi_square, degrees=degrees, sessions_per_launch=mean_size)
