// Measures how fast all cores together read and write memory. Thread-compatible.
#pragma once

namespace tutti::device {

// Measures the bytes a second of a[i] = b[i] + s c[i] over three arrays of 128 MiB, by libtorch's
// threads: the best of a few rounds, a fraction of a second in all (the triad of McCalpin 1995,
// "Memory bandwidth and machine balance in current high performance computers": what is read and
// written counts once each). Where caches hold more than that together, theirs.
double MeasureMemorySpeed();

}  // namespace tutti::device
