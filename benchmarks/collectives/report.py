"""Samples as a table for people."""
import statistics

from measure import ratios, spread


def text_of_size(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size / 1e6:g} MB" if size >= 10**6 else f"{size} B"


def text_of_time(seconds):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def cell(samples, name, reference):
    """Median time and, for all but the reference, the median and spread of how many times the reference's it is."""
    if name not in samples:
        return ""
    time = text_of_time(statistics.median(samples[name]))
    if name == reference:
        return f"{time} ±{100 * spread(samples[name]):.0f} %"
    values = ratios(samples, name, reference)
    return f"{time}, x {statistics.median(values):.2f} ±{100 * spread(values):.0f} %"


def table(rows, reference):
    """`rows`: [(size, samples)]. "x 5.00": took five times as long as the reference, in the median over the rounds;
    ±: half the distance between the quartiles. Of a bound, "x 0.97" says that the reference reaches 0.97 of it."""
    names = [reference, *dict.fromkeys(name for _, samples in rows for name in samples if name != reference)]
    lines = ["| bytes | " + " | ".join(names) + " | rounds |", "| --- " * (len(names) + 2) + "|"]
    for size, samples in rows:
        cells = [cell(samples, name, reference) for name in names]
        lines.append(f"| {text_of_size(size)} | " + " | ".join(cells) + f" | {len(samples[reference])} |")
    return "\n".join(lines)
