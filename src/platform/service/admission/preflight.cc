#include "platform/service/admission/preflight.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/faults.h"
#include "base/gpus/usable_gpus.h"
#include "base/machine/rdma_ports.h"
#include "base/process/child_process.h"
#include "base/threads/at_once.h"
#include "platform/container/make_image.h"
#include "platform/container/python/python_check.h"
#include "platform/container/registry_check.h"
#include "platform/service/admission/command_check.h"
#include "platform/service/admission/disk_space.h"
#include "platform/service/admission/gpu_check.h"
#include "platform/service/admission/inputs/remote_input_check.h"
#include "platform/service/admission/rdma_check.h"
#include "spec/data/remote_input.h"
#include "spec/file/job_file.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatienceWithNetwork = absl::Seconds(5);  // with all that is asked of it

using Lines = std::vector<std::string>;

// In their order; a component that two steps have warns twice.
Lines EachOnce(const Lines& lines) {
  std::set<std::string> seen;
  Lines once;
  for (const std::string& line : lines) {
    if (seen.insert(line).second) once.push_back(line);
  }
  return once;
}

// Whether it holds of the job or of one below it.
bool Any(const spec::JobSpec& job, bool (*holds)(const spec::JobSpec&)) {
  return holds(job) || std::any_of(job.steps.begin(), job.steps.end(),
                                   [&](const spec::Step& step) { return Any(step.job, holds); });
}

bool AsksForPython(const spec::JobSpec& job) { return !job.environment.python.empty(); }
bool NamesImage(const spec::JobSpec& job) { return !job.environment.image.empty(); }
bool HasRemoteInput(const spec::JobSpec& job) {
  return std::any_of(job.inputs.begin(), job.inputs.end(),
                     [](const auto& input) { return spec::IsRemote(input.second); });
}

// One that asks the network, with what it has found.
struct NetworkCheck {
  std::function<absl::Status(Lines&)> run;
  absl::Status found;
  Lines warnings;
};

void CheckNetwork(const spec::JobSpec& job, const std::filesystem::path& directory,
                  const SecretValues& signatures, const container::Logins& logins,
                  base::Faults& faults, Lines& warnings) {
  const base::Deadline deadline = base::Deadline::After(kPatienceWithNetwork);
  std::vector<NetworkCheck> checks;
  if (Any(job, AsksForPython)) {
    checks.push_back({[&](Lines& lines) {
      return container::CheckPythons(job, directory / "environments", deadline, lines);
    }});
  }
  if (Any(job, NamesImage)) {
    checks.push_back(
        {[&](Lines& lines) { return container::CheckRegistries(job, logins, deadline, lines); }});
  }
  if (Any(job, HasRemoteInput)) {
    checks.push_back(
        {[&](Lines& lines) { return CheckRemoteInputs(job, signatures, deadline, lines); }});
  }
  base::ForEachAtOnce(checks.size(), checks.size(),
                      [&](size_t i) { checks[i].found = checks[i].run(checks[i].warnings); });
  for (const NetworkCheck& check : checks) {
    faults.Add(check.found);
    warnings.insert(warnings.end(), check.warnings.begin(), check.warnings.end());
  }
}

MachineFacts FactsOfThisMachine() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return {.own = base::CurrentEnvironment(), .program_folder = program.parent_path().string()};
}

}  // namespace

absl::Status PreflightFiles(const spec::JobSpec& job, const std::set<std::string>& sent,
                            const std::filesystem::path& directory, Lines& warnings) {
  static const auto* const facts = new MachineFacts(FactsOfThisMachine());
  base::Faults faults;
  faults.Add(spec::CheckPaths(job, warnings, sent));
  faults.Add(container::CheckCanRun(job));
  const auto gpus = [] { return base::UsableGpus(facts->own).size(); };
  faults.Add(CheckGpus(job, gpus, warnings));
  WarnOfUnusedRdma(job, base::ActiveRdmaPorts(), warnings);
  faults.Add(CheckCommand(job, *facts, warnings));
  faults.Add(CheckCopiesFit(job, directory));
  warnings = EachOnce(warnings);
  return faults.status();
}

absl::Status PreflightNetwork(const spec::JobSpec& job, const std::filesystem::path& directory,
                              const SecretValues& signatures, const container::Logins& logins,
                              Lines& warnings) {
  base::Faults faults;
  CheckNetwork(job, directory, signatures, logins, faults, warnings);
  warnings = EachOnce(warnings);
  return faults.status();
}

}  // namespace tutti::service
