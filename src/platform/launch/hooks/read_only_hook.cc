#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process/read_only_view.h"
#include "platform/cache/fetched_home.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/hooks/node_storage.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/table_folder.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kSwitch[] = "TUTTI_READ_ONLY_INPUTS";  // "0": modes of files alone

bool HasTooManyMatched(const NodeContext& node) {
  return node.facts.matched.size() > kMostMatchedMounts;
}

// Where the inputs lie that the job is not to write to: not its own copies.
std::vector<fs::path> ReadOnlyInputs(const NodeContext& node) {
  std::vector<fs::path> paths;
  for (const auto& [name, input] : node.plan.inputs) {
    const auto staged = node.facts.inputs.find(name);
    const bool has_path = !input.path.empty() || input.place;
    if (input.mode != "ro_mount" || !has_path || staged == node.facts.inputs.end()) continue;
    if (!input.pattern.empty()) continue;  // of its folder the files alone that match
    const std::string& path = staged->second;
    const bool is_own = absl::StartsWith(path, absl::StrCat(node.plan.directory, "/"));
    if (absl::StartsWith(path, "/") && !is_own) paths.emplace_back(path);
  }
  if (!HasTooManyMatched(node)) {
    const std::vector<std::string> matched = StillThere(node.facts.matched);
    paths.insert(paths.end(), matched.begin(), matched.end());
  }
  return paths;
}

// Returns the folders that any program writes to, which stay writable below an input.
std::vector<fs::path> AlwaysWritable(const NodeContext& node) {
  std::vector<fs::path> paths;
  for (const std::string& path : {node.plan.directory, node.facts.temporary, std::string("/tmp"),
                                  std::string("/var/tmp"), std::string("/dev")}) {
    std::error_code error;
    if (!path.empty() && fs::is_directory(path, error)) paths.emplace_back(path);
  }
  return paths;
}

// The version in the node's cache that the path is the content of, if it is one.
std::optional<cache::FetchedHome> InCache(const fs::path& path, const fs::path& cache) {
  const fs::path content = path.parent_path(), version = content.parent_path();
  if (content.filename() != "content" || version.parent_path() != cache) return std::nullopt;
  return cache::FetchedHome::In(version);
}

bool IsWanted(const spec::LaunchPlan& plan) {
  const auto wish = plan.environment_variables.find(kSwitch);
  return wish == plan.environment_variables.end() || wish->second != "0";
}

// Inputs of mode ro_mount are read-only for the job's processes. Where this machine does not let
// this user have that, what protects them are their modes, and the look at the cache's copies
// before the next job.
class ReadOnlyHook : public NodeHook {
 public:
  absl::string_view name() const override { return "read-only inputs"; }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    const std::vector<fs::path> inputs = ReadOnlyInputs(node);
    if (HasTooManyMatched(node) && IsWanted(node.plan)) {
      node.notes.push_back(absl::StrCat("the ", node.facts.matched.size(),
                                        " files that its inputs' patterns match on this machine "
                                        "are read-only by their modes alone"));
    }
    if (inputs.empty() || !node.facts.image.empty()) return absl::OkStatus();  // podman mounts them
    if (IsWanted(node.plan)) {
      const absl::Status status = Protect(inputs, node);
      if (status.ok()) return status;
      node.notes.push_back(absl::StrCat(
          "its inputs are read-only on this node by their modes alone: ", status.message()));
    }
    for (const fs::path& path : inputs) {
      if (auto home = InCache(path, HomeOf(node.plan) / "data")) exposed_.push_back(*home);
    }
    return absl::OkStatus();
  }
  // Notes what is exposed before any process can write, as the launcher may be killed, but after
  // all nodes have what they read, as each would look at it anew.
  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    // One node's note is enough for a folder that all nodes share.
    if (!node.plan.shared_folder.empty() && node.plan.node_index > 0) exposed_.clear();
    NoteExposed();
    return absl::OkStatus();
  }
  // What it has written by now is seen before another job gets it.
  void AfterEnd(const spec::LaunchPlan& /*plan*/) override { NoteExposed(); }

 private:
  static absl::Status Protect(const std::vector<fs::path>& inputs, NodeContext& node) {
    auto view = base::ReadOnlyView::Make({inputs, AlwaysWritable(node)});
    if (!view.ok()) return view.status();
    node.facts.view = std::make_shared<const base::ReadOnlyView>(*std::move(view));
    return absl::OkStatus();
  }

  void NoteExposed() const {
    for (const cache::FetchedHome& home : exposed_) home.NoteExposed();
  }

  std::vector<cache::FetchedHome> exposed_;
};

}  // namespace

std::unique_ptr<NodeHook> MakeReadOnlyHook() { return std::make_unique<ReadOnlyHook>(); }

}  // namespace tutti::launch
