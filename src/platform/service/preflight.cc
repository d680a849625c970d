#include "platform/service/preflight.h"

#include <iterator>
#include <set>
#include <thread>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "platform/container/image.h"
#include "platform/container/python.h"
#include "platform/container/registry_check.h"
#include "platform/launch/command_check.h"
#include "platform/launch/node_facts.h"
#include "platform/launch/remote_input.h"
#include "platform/service/disk_space.h"
#include "platform/service/gpu_check.h"
#include "spec/job_file.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);  // with all that is asked of the network

using Lines = std::vector<std::string>;

// In their order; a component that two steps have tells of its faults twice.
Lines EachOnce(const Lines& lines) {
  std::set<std::string> seen;
  Lines once;
  for (const std::string& line : lines) {
    if (seen.insert(line).second) once.push_back(line);
  }
  return once;
}

void Add(const absl::Status& status, Lines& faults) {
  if (status.ok()) return;
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    faults.emplace_back(line);
  }
}

void CheckNetwork(const spec::JobSpec& job, Lines& faults, Lines& warnings) {
  const base::Deadline deadline = base::Deadline::After(kPatience);
  absl::Status registries;
  Lines of_registries;
  std::thread asks_registries(
      [&] { registries = container::CheckRegistries(job, deadline, of_registries); });
  const absl::Status inputs = launch::CheckRemoteInputs(job, deadline, warnings);
  asks_registries.join();
  Add(registries, faults);
  Add(inputs, faults);
  std::move(of_registries.begin(), of_registries.end(), std::back_inserter(warnings));
}

}  // namespace

absl::Status Preflight(const spec::JobSpec& job, const std::filesystem::path& directory,
                       Lines& warnings) {
  static const auto* const facts = new launch::NodeFacts(launch::FactsOfThisNode());
  Lines faults;
  Add(spec::CheckPaths(job, warnings), faults);
  Add(container::CheckCanRun(job), faults);
  Add(container::CheckPythons(job, directory / "environments", warnings), faults);
  Add(CheckGpus(job, !facts->gpus.empty(), warnings), faults);
  Add(launch::CheckCommand(job, *facts, warnings), faults);
  CheckNetwork(job, faults, warnings);
  warnings = EachOnce(warnings);
  const absl::Status space = CheckCopiesFit(job, directory);
  if (faults.empty()) return space;
  Add(space, faults);
  return absl::InvalidArgumentError(absl::StrJoin(EachOnce(faults), "\n"));
}

}  // namespace tutti::service
