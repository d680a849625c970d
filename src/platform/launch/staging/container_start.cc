#include "platform/launch/staging/container_start.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/container/job_containers.h"
#include "platform/container/podman.h"
#include "platform/launch/environment/mlflow_stores.h"
#include "platform/launch/environment/part_binding.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/staging/folders.h"
#include "platform/launch/staging/table_folder.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr char kShmSize[] = "--shm-size=";
constexpr absl::string_view kDevice = "--device=nvidia.com/gpu=";
// As on a node without containers: bash, where there is one.
constexpr char kShellOfImage[] =
    "if [ -x /bin/bash ]; then exec /bin/bash -c \"$1\"; fi; exec /bin/sh -c \"$1\"";

// The GPUs that the containers of a job get: the job's and no others of the node's, by podman's
// CDI. Other jobs may have those. Thread-safe.

std::vector<int> Numbers(const std::vector<std::string>& gpus) {
  std::vector<int> numbers;
  for (const std::string& gpu : gpus) {
    int number = 0;
    if (absl::SimpleAtoi(gpu, &number)) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Numbers them as CUDA does where it sees these alone: in the order of its numbers on the node.
std::vector<std::string> NumberedAnew(std::vector<std::string> gpus) {
  const std::vector<int> numbers = Numbers(gpus);
  for (std::string& gpu : gpus) {
    int number = 0;
    if (!absl::SimpleAtoi(gpu, &number)) continue;
    gpu = absl::StrCat(std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
  }
  return gpus;
}

// Returns the job's GPUs that CUDA knows.
std::vector<std::string> KnownGpus(const NodeFacts& facts) {
  std::vector<std::string> known;
  for (const std::string& gpu : facts.gpus) {
    size_t number = 0;
    const bool is_number = facts.gpu_names && absl::SimpleAtoi(gpu, &number);
    if (!is_number || number < facts.gpu_names->size()) known.push_back(gpu);
  }
  return known;
}

// Names them as podman's CDI file does.
std::vector<std::string> NodesNames(const NodeFacts& facts) {
  std::vector<std::string> names = KnownGpus(facts);
  for (std::string& name : names) {
    size_t number = 0;
    if (facts.gpu_names && absl::SimpleAtoi(name, &number)) name = (*facts.gpu_names)[number];
  }
  return names;
}

// Returns podman's option for each GPU of the job, by its name on the node: CUDA, whose numbers
// facts.gpus has, counts those alone that the process may open, so that where Slurm has given a job
// device 5 alone, that is CUDA's 0. None where podman knows no GPUs; none for a number that CUDA
// does not know. Names that are no numbers (a UUID) stay.
std::vector<std::string> GpuOptions(const NodeFacts& facts) {
  std::vector<std::string> options;
  if (!facts.has_cdi) return options;
  for (const std::string& gpu : NodesNames(facts)) options.push_back(absl::StrCat(kDevice, gpu));
  return options;
}

// Tells whether an option of the job names GPUs, which it has already: those of GpuOptions.
bool NamesGpus(absl::string_view option) { return absl::StartsWith(option, kDevice); }

// Sets the variables of a rank whose container has the devices of GpuOptions: CUDA numbers those
// from 0 on. What a job with whole nodes sets itself stays.
void SetGpuVariables(const spec::LaunchPlan& plan, const NodeFacts& facts, Variables& variables) {
  if (!facts.has_cdi) return;
  // Or NVIDIA's own hook adds those that the image asks for, which is all.
  variables["NVIDIA_VISIBLE_DEVICES"] = "void";
  const bool is_jobs_own = plan.environment_variables.contains("CUDA_VISIBLE_DEVICES");
  if (facts.gpus.empty() || (is_jobs_own && !plan.has_part())) return;
  // Such a container has all devices of the node, whatever it is given.
  const auto& options = plan.container_options;
  const bool sees_all = std::find(options.begin(), options.end(), "--privileged") != options.end();
  variables["CUDA_VISIBLE_DEVICES"] =
      absl::StrJoin(sees_all ? NodesNames(facts) : NumberedAnew(KnownGpus(facts)), ",");
}

std::vector<std::string> ContainerNames(const spec::LaunchPlan& plan) {
  return container::JobContainerNames(plan.allocation_id, plan.directory,
                                      plan.node().process_count);
}

// As versions before called them: a launcher of theirs may have died.
std::vector<std::string> FormerContainerNames(const spec::LaunchPlan& plan) {
  std::vector<std::string> names;
  for (int rank = 0; rank < plan.node().process_count; ++rank) {
    names.push_back(absl::StrCat("tutti-", plan.allocation_id, "-", plan.node_index, "-", rank));
  }
  return names;
}

// What the job writes belongs to the user of the service.
std::vector<std::string> UserOptions() {
  if (::geteuid() == 0) return {"--user=0:0"};
  return {"--userns=keep-id", absl::StrCat("--user=", ::geteuid(), ":", ::getegid())};
}

absl::StatusOr<std::string> Mount(const std::string& source, const std::string& target,
                                  bool read_only) {
  const std::string both = absl::StrCat(source, target);
  if (!absl::StrContains(both, ':')) {
    return absl::StrCat("--volume=", source, ":", target, read_only ? ":ro" : "");
  }
  if (absl::StrContains(both, ',') || absl::StrContains(both, '"')) {
    return absl::InvalidArgumentError(
        absl::StrCat("podman cannot mount \"", source, "\", whose name has \":\" and \",\""));
  }
  return absl::StrCat("--mount=type=bind,source=", source, ",target=", target,
                      read_only ? ",readonly" : "");
}

absl::StatusOr<std::vector<std::string>> Mounts(const spec::LaunchPlan& plan,
                                                const NodeFacts& facts) {
  const NodeFolders folders(plan.directory);
  std::vector<std::string> mounts;
  TUTTI_ASSIGN_OR_RETURN(mounts.emplace_back(), Mount(plan.directory, plan.directory, false));
  if (const fs::path link = ShortScratch(plan); link != folders.scratch()) {
    TUTTI_ASSIGN_OR_RETURN(mounts.emplace_back(), Mount(folders.scratch(), link, false));
  }
  const fs::path shared = SharedScratch(plan);
  if (!shared.empty() && shared != folders.scratch()) {
    TUTTI_ASSIGN_OR_RETURN(mounts.emplace_back(), Mount(shared, shared, false));
  }
  std::set<std::string> seen;
  for (const auto& [name, input] : plan.inputs) {
    const auto staged = facts.inputs.find(name);
    if ((input.path.empty() && !input.place) || staged == facts.inputs.end()) continue;
    const std::string& path = staged->second;
    const bool below = absl::StartsWith(path, absl::StrCat(plan.directory, "/"));
    // The job has copies of what a table names, or, by a pattern, the files alone that match.
    const bool is_hidden =
        !input.table.empty() && (input.mode == "download" || !input.pattern.empty());
    if (is_hidden || below || !absl::StartsWith(path, "/") || !seen.insert(path).second) continue;
    TUTTI_ASSIGN_OR_RETURN(mounts.emplace_back(), Mount(path, path, true));
  }
  for (const std::string& file : StillThere(facts.matched)) {
    if (!seen.insert(file).second) continue;
    TUTTI_ASSIGN_OR_RETURN(mounts.emplace_back(), Mount(file, file, true));
  }
  return mounts;
}

// Where podman may make such a cgroup. Elsewhere a container has the processors of who starts it.
bool MayLimitCores() {
  if (::geteuid() != 0) return false;
  std::error_code error;
  const auto controllers = base::ReadFile("/sys/fs/cgroup/cgroup.controllers", 4096);
  return controllers.ok() ? absl::StrContains(*controllers, "cpuset")
                          : fs::exists("/sys/fs/cgroup/cpuset/cpuset.cpus", error);
}

// Podman takes the value of `--env=NAME` from its own environment, so that no secret stands on a
// command line; but what steers podman itself, and would do so otherwise than for the launcher, is
// handed on by another name.
bool SteersPodman(const std::string& name) {
  static constexpr absl::string_view kPrefixes[] = {
      "CONTAINER", "PODMAN", "XDG_",     "DOCKER",    "BUILDAH", "GO",        "LD_",
      "_",         "TMP",    "STORAGE_", "REGISTRY_", "NOTIFY_", "SSL_CERT_", "DBUS_"};
  return name == "HOME" || name == "PATH" ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

bool IsName(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c == '_' || absl::ascii_isalnum(c); });
}

// Adds the options that the job has for its container. "--env=NAME=VALUE" (docker_args) becomes a
// variable, which is handed on as all others are and gives way to them, as podman's last one does.
void AddOptions(const spec::LaunchPlan& plan, Variables& variables, ContainerStart& start) {
  Variables given;
  for (const std::string& option : plan.container_options) {
    absl::string_view text = option;
    if (absl::StartsWith(text, kShmSize) || NamesGpus(text)) continue;
    const bool is_variable = absl::ConsumePrefix(&text, "--env=");
    const size_t equals = text.find('=');
    if (!is_variable || equals == absl::string_view::npos) {
      start.arguments.push_back(option);
    } else {
      given[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
    }
  }
  variables.insert(given.begin(), given.end());
}

// Returns what the container's shell does first: it gives those their names that had another.
std::string AddVariables(const Variables& variables, ContainerStart& start) {
  start.environment = base::CurrentEnvironment();
  const Variables own = start.environment;
  std::string renames;
  for (const auto& [name, value] : variables) {
    const auto same = own.find(name);
    std::string given = name;
    // Podman knows no name that a shell does not.
    if (SteersPodman(name) && IsName(name) && (same == own.end() || same->second != value)) {
      given = absl::StrCat("TUTTI_VALUE_OF_", name);
      absl::StrAppend(&renames, "export ", name, "=\"$", given, "\"; unset ", given, "; ");
    }
    start.arguments.push_back(absl::StrCat("--env=", given));
    start.environment[given] = value;
  }
  return renames;
}

// Has the container's shell read the variables whose values podman is not told: it would write them
// down. What the contract sets stays.
std::string ReadSecrets(const spec::LaunchPlan& plan, const NodeFacts& facts) {
  const std::vector<std::string> overridden = OverriddenNames(plan);
  std::string text;
  for (const auto& [name, file] : facts.secrets_in_files) {
    if (std::find(overridden.begin(), overridden.end(), name) != overridden.end()) continue;
    // That of the job's run, which is one line: by the shell itself, and not worth a job's failing.
    if (name == kTrackingToken && !NamesVariable(plan, name)) {
      absl::StrAppend(&text, "read -r ", name, " <", file, " || :; export ", name, "; ");
      continue;
    }
    // The shell takes newlines off the end, so that something has to stand behind them.
    absl::StrAppend(&text, name, "=$(cat ", file, " && echo .) || exit 126; ", name, "=\"${", name,
                    "%.}\"; export ", name, "; ");
  }
  return text;
}

int64_t SizeInBytes(absl::string_view text) {
  int64_t unit = 1, number = 0;
  if (!text.empty() && !absl::ascii_isdigit(text.back())) {
    const char letter = absl::ascii_tolower(text.back());
    unit = letter == 'g' ? 1 << 30 : letter == 'm' ? 1 << 20 : letter == 'k' ? 1 << 10 : 1;
    text.remove_suffix(1);
  }
  return absl::SimpleAtoi(text, &number) && number < (int64_t{1} << 62) / unit ? number * unit : 0;
}

void Append(std::vector<std::string> more, std::vector<std::string>& list) {
  std::move(more.begin(), more.end(), std::back_inserter(list));
}

}  // namespace

absl::StatusOr<ContainerStart> ContainerStartOf(const spec::LaunchPlan& plan, int local_rank,
                                                const std::string& command,
                                                const NodeFacts& facts) {
  TUTTI_ASSIGN_OR_RETURN(const std::string podman, container::FindPodman());
  ContainerStart start;
  // --log-driver=passthrough: the rank has its pipes as its own output, and nobody copies it.
  start.arguments = {podman,
                     "run",
                     absl::StrCat("--name=", ContainerNames(plan).at(local_rank)),
                     "--log-driver=passthrough",
                     "--sig-proxy=false",
                     "--network=host",
                     "--pid=host",
                     "--ipc=host",
                     "--uts=host",
                     "--security-opt=label=disable",
                     "--entrypoint=",
                     absl::StrCat("--pids-limit=", MostProcesses()),
                     absl::StrCat("--workdir=", NodeFolders(plan.directory).work().string())};
  Append(container::JobContainerLabels(plan.directory), start.arguments);
  Append(UserOptions(), start.arguments);
  Append(container::LimitOptions(), start.arguments);
  TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> mounts, Mounts(plan, facts));
  Append(std::move(mounts), start.arguments);
  Append(GpuOptions(facts), start.arguments);
  const std::vector<int> cores = plan.has_part() ? CoresOfRank(plan, local_rank) : CoresIfNotAll();
  if (!cores.empty() && MayLimitCores()) {
    start.arguments.push_back(absl::StrCat("--cpuset-cpus=", CoreList(cores)));
  }
  Variables variables = EnvironmentOf(plan, local_rank, facts);
  AddOptions(plan, variables, start);
  SetGpuVariables(plan, facts, variables);
  const std::string renames = AddVariables(variables, start) + ReadSecrets(plan, facts);
  Append({facts.image, "/bin/sh", "-c", renames + kShellOfImage, "sh", command}, start.arguments);
  return start;
}

absl::Status NoteContainers(const spec::LaunchPlan& plan) {
  return container::NoteContainers(plan.directory, ContainerNames(plan));
}

absl::Status RemoveContainers(const spec::LaunchPlan& plan) {
  if (plan.environment.image.empty()) return absl::OkStatus();
  const std::vector<std::string> names = ContainerNames(plan), former = FormerContainerNames(plan);
  std::set<std::string> all(names.begin(), names.end());
  all.insert(former.begin(), former.end());
  TUTTI_RETURN_IF_ERROR(container::RemoveContainers(all, /*cancelled=*/false));
  return container::ForgetContainers(plan.directory);
}

std::string ContainerRemark(const spec::LaunchPlan& plan, const NodeFacts& facts) {
  std::vector<std::string> remarks;
  struct statvfs shm {};
  const bool known = ::statvfs("/dev/shm", &shm) == 0;
  for (absl::string_view option : plan.container_options) {
    if (!absl::ConsumePrefix(&option, kShmSize) || !known) continue;
    const uint64_t bytes = uint64_t{shm.f_blocks} * shm.f_frsize;
    if (bytes >= static_cast<uint64_t>(SizeInBytes(option))) continue;
    remarks.push_back(absl::StrCat("shm_size ", option, " is more than the ", bytes >> 20,
                                   " MiB of this node's /dev/shm"));
  }
  if (!facts.gpus.empty() && !facts.has_cdi) {
    remarks.push_back(
        "the containers do not see this node's GPUs: make its CDI file (nvidia-ctk cdi generate "
        "--output=/etc/cdi/nvidia.yaml)");
  }
  return absl::StrJoin(remarks, "; ");
}

}  // namespace tutti::launch
