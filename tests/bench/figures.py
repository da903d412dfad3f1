"""How a figure is printed: one line, with the bound it is held to."""
import statistics

ROUNDS = 5  # of rates and ratios: machines are noisy


def report(name, figure, unit, bound=""):
    print(f"{name:<58} {figure:>12,.2f} {unit:<14} {bound}".rstrip(), flush=True)


def report_rounds(name, figures, unit, bound=""):
    """The median of the rounds, and how far they lie apart."""
    low, high = min(figures), max(figures)
    digits = 0 if low >= 100 else 2
    report(name, statistics.median(figures), unit, f"{bound} (from {low:,.{digits}f} to {high:,.{digits}f})".strip())
