#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/gpus/usable_gpus.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/script/environment_choice.h"
#include "platform/client/submit/submit.h"
#include "platform/container/make_image.h"
#include "platform/container/podman.h"
#include "spec/file/job_file.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/node_folder.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// These commands end with the process.
const std::atomic<bool> never = false;

// Wanted is the environment to build, and the compute whose nodes it is for.
struct Wanted {
  spec::Environment environment;
  std::string compute;  // "": this machine's
};

// A job file, or a script: what is neither an environment nor a list of packages.
bool IsJob(const fs::path& file) {
  if (file.extension() != ".yml" && file.extension() != ".yaml") return true;
  const auto root = spec::ParseYaml(base::ReadFile(file, 1 << 20).value_or(""), file.native());
  if (!root.ok()) return false;
  for (const char* key : {"command", "jobs", "trial", "environment", "type"}) {
    if (spec::FindEntry(**root, key) != nullptr) return true;
  }
  return false;
}

void AddEnvironmentsOf(const spec::JobSpec& job, std::vector<Wanted>& wanted) {
  if (job.kind == spec::JobKind::kPipeline) {
    for (const spec::Step& step : job.steps) AddEnvironmentsOf(step.job, wanted);
  } else if (!job.environment.is_host) {
    wanted.push_back({job.environment, job.compute});
  }
}

absl::StatusOr<std::vector<Wanted>> EnvironmentsOfJob(Context& context, const std::string& file) {
  TUTTI_ASSIGN_OR_RETURN(const CheckedJob checked,
                         CheckJob(nullptr, context.home, {file, {}, {}, {}, {}}));
  for (const std::string& remark : checked.remarks) context.err << remark << "\n";
  std::vector<Wanted> wanted;
  AddEnvironmentsOf(checked.job, wanted);
  if (!wanted.empty()) return wanted;
  return absl::InvalidArgumentError(absl::StrCat(
      file, ": its environment is the machine's own Python: there is nothing to make"));
}

// A folder with a Dockerfile, a list of packages, an environment's file, a job's or a script.
absl::StatusOr<std::vector<Wanted>> WhatIsIn(Context& context, const std::string& file) {
  std::error_code error;
  const fs::path path = fs::absolute(file).lexically_normal();
  if (fs::is_directory(path, error)) {
    spec::Environment built{.is_host = false};
    built.image = {"", path.string(), "Dockerfile", file};
    return std::vector<Wanted>{{std::move(built), ""}};
  }
  TUTTI_ASSIGN_OR_RETURN(const EnvironmentChoice choice, EnvironmentOf(file));
  if (choice.conda_file.empty() && IsJob(path)) return EnvironmentsOfJob(context, file);
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  const base::TemporaryDirectory scratch("tutti-environment");
  fs::path written = path;
  if (!choice.conda_file.empty()) {  // as a job that names it
    written = scratch.path() / "environment.yml";
    const nlohmann::json text = {{"conda_file", choice.conda_file}};
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(written, text.dump()));
  }
  TUTTI_ASSIGN_OR_RETURN(spec::Environment environment, spec::ReadEnvironmentFile(written, site));
  return std::vector<Wanted>{{std::move(environment), ""}};
}

// Returns where the nodes of a compute look for Python environments.
absl::StatusOr<fs::path> EnvironmentsOf(const Context& context, std::string compute) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  if (const auto named = site.computes.find(compute); named != site.computes.end()) {
    compute = named->second;
  }
  const auto cluster = site.slurm_computes.find(compute);
  if (cluster == site.slurm_computes.end()) {
    if (compute.empty() || compute == "local") return context.home / "environments";
    return absl::InvalidArgumentError(absl::StrCat("no compute is named ", compute));
  }
  if (!spec::NodeFolder(cluster->second.folder)) {
    return fs::path(cluster->second.folder) / "environments";
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the nodes of compute ", compute,
                   " share no folder: each makes its environments itself, or takes an image"));
}

absl::Status BuildPython(Context& context, const EnvironmentOptions& options,
                         const Wanted& wanted) {
  TUTTI_ASSIGN_OR_RETURN(
      const fs::path environments,
      EnvironmentsOf(context, options.compute.empty() ? wanted.compute : options.compute));
  const bool gpus = options.gpus.value_or(!base::UsableGpus(base::CurrentEnvironment()).empty());
  const auto made = context.build_environment(wanted.environment, environments, gpus);
  // The service, which is not asked, is not what cannot be reached.
  if (absl::IsUnavailable(made.status())) {
    return absl::FailedPreconditionError(absl::StrCat("this machine has ", made.status().message(),
                                                      ": say where there is one by PIP_INDEX_URL"));
  }
  TUTTI_RETURN_IF_ERROR(made.status());
  if (!made->note.empty()) context.err << "note: " << made->note << "\n";
  context.out << made->folder.string() << "\n";
  return absl::OkStatus();
}

// An image that is missing or unusable is an error of the user's input.
absl::Status AsUsers(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status)
             ? absl::InvalidArgumentError(status.message())
             : status;
}

absl::Status BuildImage(Context& context, const EnvironmentOptions& options,
                        const spec::Environment& environment) {
  TUTTI_ASSIGN_OR_RETURN(const container::MadeImage made,
                         container::MakeImage(environment, context.home / "environments", never));
  if (!made.note.empty()) context.err << "note: " << made.note << "\n";
  if (options.image.empty()) {
    context.out << made.id << "\n";
    return absl::OkStatus();
  }
  const base::TemporaryDirectory scratch("tutti-podman");
  TUTTI_RETURN_IF_ERROR(
      container::RunPodman({"tag", made.id, options.image}, scratch.path() / "tag.log", never)
          .status());
  context.out << options.image << " is " << made.id << "\n";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> EnvironmentBuild(Context& context, const EnvironmentOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Wanted> wanted, WhatIsIn(context, options.file));
  for (const Wanted& one : wanted) {
    const bool is_image = !one.environment.image.empty();
    if (!is_image && !options.image.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          options.file,
          ": this environment is no image here, but Python packages: leave out --tag"));
    }
    const absl::Status built = is_image ? BuildImage(context, options, one.environment)
                                        : BuildPython(context, options, one);
    TUTTI_RETURN_IF_ERROR(AsUsers(built));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> EnvironmentPush(Context& context, const EnvironmentOptions& options) {
  const base::TemporaryDirectory scratch("tutti-podman");
  std::vector<std::string> arguments = {"push", "--quiet", options.image};
  if (!options.destination.empty()) arguments.push_back(options.destination);
  TUTTI_RETURN_IF_ERROR(
      AsUsers(container::RunPodman(arguments, scratch.path() / "push.log", never).status()));
  context.out << (options.destination.empty() ? options.image : options.destination)
              << " is in its registry\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
