// Writes a plan: its rows, what limits them, and the advice of the reference architecture for
// distributed training in its order, each sentence with the numbers that it follows from. Pure
// functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/bench/plan/prediction.h"

namespace tutti::bench {

struct Advice {
  std::string about;  // "up before out", "batch", "transport", "data"
  std::string text;
};

// Returns the four of them, for the largest number of nodes.
std::vector<Advice> AdviceOf(const NodeFacts& facts, const PlanQuestion& question);

// Returns a sentence for each limit but compute, from which number of nodes on it is one, and for
// whatever makes the numbers less sure.
std::vector<std::string> WarningsOf(const NodeFacts& facts, const PlanQuestion& question,
                                    std::span<const PlanRow> rows);

// Returns all of it in Markdown.
std::string PlanTable(const NodeFacts& facts, const PlanQuestion& question,
                      std::span<const PlanRow> rows);

// Returns all of it as JSON, from which FactsOfPlan (facts.h) reads.
std::string PlanDocument(const NodeFacts& facts, const PlanQuestion& question,
                         std::span<const PlanRow> rows);

}  // namespace tutti::bench
