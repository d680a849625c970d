// Lists the instruction sets of this processor, for tests that call each version of a kernel.
#pragma once

#include <vector>

#include "base/machine/instruction_set.h"

namespace tutti::data {

// Returns all that this process may use, the plainest first.
inline std::vector<base::InstructionSet> SetsOfThisProcessor() {
  std::vector<base::InstructionSet> sets;
  for (const auto set :
       {base::InstructionSet::kPlain, base::InstructionSet::kAvx2, base::InstructionSet::kAvx512}) {
    if (set <= base::UsableInstructionSet()) sets.push_back(set);
  }
  return sets;
}

}  // namespace tutti::data
