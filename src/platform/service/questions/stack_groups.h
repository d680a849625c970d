// StackGroups puts ranks whose processes do the same together, as their stacks come. What differs
// between any two processes does not count: addresses, the numbers of processes and threads, and
// whether a thread had a processor at that moment. Of a group the stacks of its first rank are
// kept, so that a gang takes no more memory than it has different stacks. Not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spec/json/rank_stacks.h"

namespace tutti::service {

struct StackGroup {
  std::vector<int> ranks;  // ascending
  int shown = 0;           // the one of them whose stacks these are
  spec::RankStacks stacks;
};

class StackGroups {
 public:
  explicit StackGroups(size_t most_bytes) : most_bytes_(most_bytes) {}

  // Adds a rank, once. False if there is no room for stacks that no other rank has.
  bool Add(int rank, spec::RankStacks stacks);
  // Returns them, the largest first; of equal ones that of the lower rank.
  std::vector<StackGroup> Take();

 private:
  const size_t most_bytes_;
  size_t bytes_ = 0;
  std::map<std::string, StackGroup> groups_;  // by what is compared
};

// Returns what is compared of a process's stacks.
std::string ComparedText(absl::string_view stacks);

}  // namespace tutti::service
