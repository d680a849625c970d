// WeakenEach tests that a protocol needs the memory orders that it asks for: each in turn is made
// one step weaker, and the model has to find what goes wrong then.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/comm/model/interleavings.h"

namespace tutti::comm {

// Explores all cases of a protocol, as it is or with a weaker order; the first that fails.
using ExploreProtocol = std::function<Interleavings::Result(const std::optional<WeakenedOrder>&)>;

struct OrderCheck {
  size_t tried = 0;
  std::vector<std::string> not_needed;  // "byte_ring.h:58 store: seq_cst, release would do"
};

OrderCheck WeakenEach(const ExploreProtocol& explore);

// Prints a line for the log of a test: "byte ring: 12345 states, 678 runs".
void PrintCounts(const std::string& what, const Interleavings::Result& result);

}  // namespace tutti::comm
