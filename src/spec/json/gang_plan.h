// Splits the launch plans of a gang into files: one document has all that its nodes share, kept
// once however many they are; each node has a small one of its own, which names that
// (docs/formats/launch-plan.md). A node that is alone has all in one document, as had every node of
// a gang in earlier versions: readers take either.
#pragma once

#include <filesystem>
#include <string>

#include "spec/json/launch_plan.h"

namespace tutti::spec {

// What of a plan is a node's own.
struct NodePart {
  int node_index = 0;
  std::string directory, former_directory;
  int64_t memory_bytes = 0;
  std::vector<int> cores;  // as in LaunchPlan, as the next
  std::vector<std::string> gpus;
};

LaunchPlan PlanFor(LaunchPlan shared, const NodePart& part);

// Returns what the nodes share, without what is one's own.
std::string SharedToJson(const LaunchPlan& plan);
// Returns a node's own document, whose gang's shared one is in that file, absolute.
std::string ToJson(const NodePart& part, const std::filesystem::path& shared);

// Returns the plan in `file`, with what it shares with others. InvalidArgument names the field that
// is missing or of the wrong type, and the file if it is the shared one.
absl::StatusOr<LaunchPlan> ReadLaunchPlan(const std::filesystem::path& file);
// Reads what is the node's own from the text of such a file; the shared file is not needed.
absl::StatusOr<NodePart> NodePartOf(absl::string_view text);

}  // namespace tutti::spec
