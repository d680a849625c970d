// ChooseAllReduce chooses the algorithm that is fastest for so many bytes over so many ranks, by
// the least time that a model predicts. Sending s bytes over a link takes alpha + s beta seconds,
// both ways at once, and adding s bytes takes s gamma (R. Hockney 1994; R. Thakur, R. Rabenseifner,
// W. Gropp 2005). With n ranks, N bytes and p the largest power of two up to n:
//
//   doubling           log2(p) (alpha + N beta + 3 N gamma)
//                        + 2 alpha + 2 N beta + 3 N gamma                if n is no power of two
//   halving-doubling   2 log2(p) alpha + (p-1)/p N (2 beta + gamma)
//                        + 3 alpha + 2 N beta + N/2 gamma                if n is no power of two
//   ring               2 (n-1) alpha + (n-1)/n N (max(beta, gamma) + beta)
//
// (Three times gamma, because doubling needs memory of its own for what comes, and copies. The ring
// adds while it sends and takes. Halving stands still between two steps, which lets a link run dry
// as well: over four nodes with 1 Gbit/s each, 16 MiB took 1.1 times the ring's time.)
//
// So doubling is for few bytes, the ring for many, and halving-doubling for what lies between where
// ranks are many. A reduction up a tree and a broadcast down it is missing because it never wins:
// it takes 2 ceil(log2 n) hops of N bytes each, and doubling takes at most floor(log2 n) + 2 of
// them, which is not more for any n above 2, and 1 for n = 2.
//
// Pure: ranks that give it the same numbers choose alike.
#pragma once

#include <cstddef>

namespace tutti::comm {

struct LinkCost {
  double alpha;  // seconds a message
  double beta;   // seconds a byte sent
  double gamma;  // seconds a byte added
};

// What is assumed in deterministic groups and where nothing was measured: TCP over a good Ethernet.
inline constexpr LinkCost kUsualCost = {15e-6, 0.4e-9, 0.1e-9};

enum class AllReduceAlgorithm { kDoubling, kHalvingDoubling, kRing };

double PredictedSeconds(AllReduceAlgorithm algorithm, size_t bytes, int ranks,
                        const LinkCost& cost);

// Chooses among equals the ring, whose sending, taking and adding overlap.
AllReduceAlgorithm ChooseAllReduce(size_t bytes, int ranks, const LinkCost& cost);

}  // namespace tutti::comm
