#include "platform/launch/outputs/resumed_files.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/outputs/earlier_files.h"
#include "platform/launch/outputs/stored_files.h"
#include "platform/launch/staging/copy.h"
#include "spec/types/data_place.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestResumedList = uint64_t{1} << 30;

using States = std::map<std::string, FileState>;  // by the result's path

absl::Status WriteStates(const spec::LaunchPlan& plan, const States& states) {
  nlohmann::json list = nlohmann::json::object();
  for (const auto& [path, state] : states) {
    list[path] = {state.bytes, state.modified, state.changed, state.inode};
  }
  return base::WriteFileAtomic(NodeFolders(plan.directory).resumed(),
                               list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// A path that is no UTF-8 does not come back: that file counts as the job's own.
States ReadStates(const std::string& directory) {
  States states;
  const auto text = base::ReadFile(NodeFolders(directory).resumed(), kLargestResumedList);
  if (!text.ok()) return states;
  const auto list = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_object()) return states;
  for (const auto& [path, state] : list.items()) {
    if (!state.is_array() || state.size() != 4) continue;
    states[path] = {state[0].get<int64_t>(), state[1].get<int64_t>(), state[2].get<int64_t>(),
                    state[3].get<uint64_t>()};
  }
  return states;
}

bool IsAs(const States& states, const Result& result) {
  const auto known = states.find(result.path);
  if (known == states.end()) return false;
  const auto now = StateOf(result.file);
  return now.ok() && *now == known->second;
}

bool IsMlflowStore(const std::string& name) {
  return name == "mlruns" || absl::StartsWith(name, "mlruns-rank-");
}

// Both jobs have the output at one place of a store, which has what is there now.
bool IsFilledByItsStore(const spec::LaunchPlan& plan, const spec::Output& output) {
  return BeginsWithItsStore(output) && spec::PlaceOfJob(*output.place, plan.job_id).path ==
                                           spec::PlaceOfJob(*output.place, plan.resume).path;
}

absl::Status CopyEntry(const spec::LaunchPlan& plan, const fs::path& from,
                       const std::atomic<bool>& cancelled) {
  const NodeFolders folders(plan.directory);
  const std::string name = from.filename().native();
  if (IsMlflowStore(name)) return absl::OkStatus();
  const auto output = plan.outputs.find(name);
  if (output == plan.outputs.end()) return Copy(from, folders.work_outputs() / name, cancelled);
  if (IsFilledByItsStore(plan, output->second)) return absl::OkStatus();
  return Copy(from, folders.outputs() / name, cancelled);
}

absl::Status CopyAll(const spec::LaunchPlan& plan, const std::atomic<bool>& cancelled) {
  std::error_code error;
  fs::directory_iterator entry(plan.resume_outputs, error);
  if (error == std::errc::no_such_file_or_directory) {
    return absl::NotFoundError(
        absl::StrCat("its outputs, ", plan.resume_outputs, ", are not on node ", plan.node().name));
  }
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    TUTTI_RETURN_IF_ERROR(CopyEntry(plan, entry->path(), cancelled));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", plan.resume_outputs), error.value());
  return absl::OkStatus();
}

}  // namespace

bool FormerAttemptHadBegun(const spec::LaunchPlan& plan) {
  std::error_code error;
  return plan.resume.empty() || fs::exists(NodeFolders(plan.former_directory).resumed(), error);
}

absl::StatusOr<std::vector<Result>> CopyResumedFiles(const spec::LaunchPlan& plan,
                                                     const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(
      base::Annotate(CopyAll(plan, cancelled), absl::StrCat("resume from job ", plan.resume)));
  States states;
  std::vector<Result> first;
  // What an attempt before has sent may be newer than what was copied: then all of it counts as
  // this node's own. Without a former folder none before this one had started a process.
  if (plan.nodes.size() > 1 && plan.former_directory.empty()) {
    for (Result& result : ResultsOf(plan).files) {
      TUTTI_ASSIGN_OR_RETURN(states[result.path], StateOf(result.file));
      if (plan.node_index == 0) first.push_back(std::move(result));
    }
  }
  TUTTI_RETURN_IF_ERROR(WriteStates(plan, states));
  return first;
}

absl::Status KeepResumedFiles(const spec::LaunchPlan& plan) {
  if (plan.resume.empty()) return absl::OkStatus();
  const States known = ReadStates(plan.former_directory);
  spec::LaunchPlan former = plan;
  former.directory = plan.former_directory;
  States unchanged, states;
  for (const Result& result : ResultsOf(former).files) {
    if (IsAs(known, result)) unchanged[result.path];
  }
  for (const Result& result : ResultsOf(plan).files) {
    if (!unchanged.contains(result.path)) continue;
    TUTTI_ASSIGN_OR_RETURN(states[result.path], StateOf(result.file));
  }
  return WriteStates(plan, states);
}

void LeaveOutResumedFiles(const spec::LaunchPlan& plan, Results& results) {
  if (plan.resume.empty() || plan.nodes.size() == 1) return;
  const States states = ReadStates(plan.directory);
  std::erase_if(results.files, [&](const Result& result) { return IsAs(states, result); });
}

}  // namespace tutti::launch
