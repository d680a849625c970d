#include "platform/launch/staging/staging.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/container/image.h"
#include "platform/launch/environment/mlflow_stores.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/python_environment.h"
#include "platform/launch/staging/remote_input.h"
#include "platform/launch/staging/unpack.h"
#include "platform/mlflow/file_store.h"
#include "platform/mlflow/model_registry.h"
#include "spec/text/expressions.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestScratch = 64;

absl::Status LinkShortScratch(const NodeFolders& folders) {
  const fs::path link = ShortScratch(folders);
  if (link == folders.scratch()) return absl::OkStatus();
  std::error_code error;
  fs::remove(link, error);
  fs::create_symlink(folders.scratch(), link, error);
  if (error) return base::ErrnoStatus(absl::StrCat("link ", link.string()), error.value());
  return absl::OkStatus();
}

absl::Status MakeFolders(const spec::LaunchPlan& plan) {
  const NodeFolders folders(plan.directory);
  TUTTI_RETURN_IF_ERROR(MakeEmptyFolders(folders));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd host_file,
                         base::Open(folders.host_file(), O_WRONLY | O_CREAT));
  TUTTI_RETURN_IF_ERROR(base::Shorten(host_file.get(), 0, folders.host_file().string()));
  TUTTI_RETURN_IF_ERROR(
      base::WriteAll(host_file.get(), HostFile(plan), folders.host_file().string()));
  return LinkShortScratch(folders);
}

absl::Status StageCode(const spec::LaunchPlan& plan, Delivery* delivery) {
  const NodeFolders folders(plan.directory);
  if (!plan.snapshot.empty()) {
    const fs::path own = folders.scratch() / "snapshot.tar.zst";
    TUTTI_ASSIGN_OR_RETURN(const fs::path archive, delivery->FetchCode(own));
    // The code may have something else of that name.
    ::rmdir(folders.work_logs().c_str());
    ::rmdir(folders.work_outputs().c_str());
    const absl::Status unpacked = UnpackArchive(archive, folders.work());
    ::unlink(own.c_str());
    TUTTI_RETURN_IF_ERROR(unpacked);
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folders.work_logs()));
  return base::MakeDirectories(folders.work_outputs());
}

// Copies a file or a folder with all it holds; links are followed.
absl::Status Copy(const fs::path& from, const fs::path& to, const std::atomic<bool>& cancelled) {
  if (cancelled) return absl::CancelledError("stopped while inputs were copied");
  std::error_code error;
  if (!fs::is_directory(from, error)) {
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (error) return base::ErrnoStatus(absl::StrCat("copy ", from.string()), error.value());
    return absl::OkStatus();
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    TUTTI_RETURN_IF_ERROR(Copy(entry->path(), to / entry->path().filename(), cancelled));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
  return absl::OkStatus();
}

// Where the input lies on this node. Under inputs/NAME there is a copy, or a link to it.
absl::StatusOr<std::string> StageInput(const spec::LaunchPlan& plan, const std::string& name,
                                       const spec::Input& input,
                                       const std::atomic<bool>& cancelled) {
  if (input.path.empty()) return input.literal;
  fs::path path(std::string(absl::StripPrefix(input.path, "file://")));
  if (IsRemote(input)) {
    const fs::path data = fs::path(plan.environments_directory).parent_path() / "data";
    TUTTI_ASSIGN_OR_RETURN(path, FetchInput(name, input, data, cancelled));
  }
  const fs::path place = NodeFolders(plan.directory).inputs() / name;
  std::error_code error;
  if (!fs::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("input \"", name, "\": ", path.string(),
                                            " does not exist on node ", plan.node().name));
  }
  const bool is_folder = fs::is_directory(path, error);
  const bool either = !absl::StartsWith(input.type, "uri_");  // a model is a file or a folder
  if (!either && is_folder != (input.type == "uri_folder")) {
    return absl::InvalidArgumentError(
        absl::StrCat("input \"", name, "\": ", path.string(), " is a ",
                     is_folder ? "folder, so its type must be uri_folder"
                               : "file, so its type must be uri_file"));
  }
  if (input.mode != "download") {
    fs::create_symlink(path, place, error);  // for those who look below AZ_BATCHAI_MOUNT_ROOT
    return path.string();
  }
  const fs::path copy = is_folder ? place : place / path.filename();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(place));
  TUTTI_RETURN_IF_ERROR(
      base::Annotate(Copy(path, copy, cancelled), absl::StrCat("input \"", name, "\"")));
  return copy.string();
}

absl::Status StageEnvironment(const spec::LaunchPlan& plan, const std::atomic<bool>& cancelled,
                              Staged& staged) {
  if (plan.environment.is_host) return absl::OkStatus();
  if (!plan.environment.image.empty()) {
    TUTTI_ASSIGN_OR_RETURN(
        container::MadeImage made,
        container::MakeImage(plan.environment, plan.environments_directory, cancelled));
    staged.image = std::move(made.id);
    staged.note = std::move(made.note);
    return absl::OkStatus();
  }
  TUTTI_ASSIGN_OR_RETURN(MadeEnvironment made,
                         MakeEnvironment(plan.environment, plan.environments_directory, cancelled));
  const fs::path own = NodeFolders(plan.directory).python();
  TUTTI_RETURN_IF_ERROR(MakeJobPython(made.folder, own));
  TUTTI_ASSIGN_OR_RETURN(const std::string library, LibraryOf(made.folder));
  const fs::path packages = fs::path("lib") / library / "site-packages";
  TUTTI_RETURN_IF_ERROR(mlflow::AddModelRegistry(made.folder / packages, own / packages));
  staged.python = own.string();
  staged.note = std::move(made.note);
  return absl::OkStatus();
}

// Links as they are, also those that lead nowhere; what is neither a file nor a folder is left out,
// and so is what vanishes meanwhile.
absl::Status CopyAsItIs(const fs::path& from, const fs::path& to,
                        const std::atomic<bool>& cancelled) {
  if (cancelled) return absl::CancelledError("stopped while outputs were copied");
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path target = to / entry->path().filename();
    std::error_code failed;
    const fs::file_status status = entry->symlink_status(failed);
    if (fs::is_directory(status)) {
      TUTTI_RETURN_IF_ERROR(CopyAsItIs(entry->path(), target, cancelled));
    } else if (fs::is_symlink(status)) {
      fs::copy_symlink(entry->path(), target, failed);
    } else if (fs::is_regular_file(status)) {
      fs::copy_file(entry->path(), target, fs::copy_options::overwrite_existing, failed);
    }
    if (failed && failed != std::errc::no_such_file_or_directory) {
      return base::ErrnoStatus(absl::StrCat("copy ", entry->path().string()), failed.value());
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
  }
  return absl::OkStatus();
}

// What the attempt before this one had written: it may have checkpoints to resume from. Copied,
// since a launcher that is cut off may still be writing there.
absl::Status TakeOverOutputs(const spec::LaunchPlan& plan, const std::atomic<bool>& cancelled) {
  if (plan.former_directory.empty()) return absl::OkStatus();
  const NodeFolders former(plan.former_directory), own(plan.directory);
  const std::pair<fs::path, fs::path> folders[] = {{former.work_outputs(), own.work_outputs()},
                                                   {former.outputs(), own.outputs()}};
  std::error_code error;
  for (const auto& [from, to] : folders) {
    if (fs::is_directory(from, error)) TUTTI_RETURN_IF_ERROR(CopyAsItIs(from, to, cancelled));
  }
  mlflow::AdoptMovedStores(own.work_outputs());
  return absl::OkStatus();
}

}  // namespace

fs::path ShortScratch(const NodeFolders& folders) {
  const std::string path = folders.scratch().string();
  if (path.size() <= kLongestScratch) return path;
  return absl::StrCat("/tmp/tutti-", base::Hex(base::Sha256Of(path)).substr(0, 16));
}

void RemoveShortScratch(const NodeFolders& folders) {
  std::error_code error;
  if (const fs::path link = ShortScratch(folders); link != folders.scratch()) {
    fs::remove(link, error);
  }
}

absl::Status MakeEmptyFolders(const NodeFolders& folders) {
  for (const fs::path& folder : {folders.work_logs(), folders.work_outputs(), folders.inputs(),
                                 folders.outputs(), folders.scratch()}) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  }
  return absl::OkStatus();
}

bool StagesAtOnce(const spec::LaunchPlan& plan) {
  const bool brings_inputs = std::any_of(
      plan.inputs.begin(), plan.inputs.end(),
      [](const auto& named) { return named.second.mode == "download" || IsRemote(named.second); });
  return plan.snapshot.empty() && plan.former_directory.empty() && plan.environment.is_host &&
         !brings_inputs;
}

absl::StatusOr<Staged> Stage(const spec::LaunchPlan& plan, Delivery* delivery,
                             const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(MakeFolders(plan));
  TUTTI_RETURN_IF_ERROR(base::Annotate(StageCode(plan, delivery), "code"));
  TUTTI_RETURN_IF_ERROR(
      base::Annotate(TakeOverOutputs(plan, cancelled), "outputs of the attempt before"));
  MakeMlflowStores(plan);
  Staged staged;
  staged.temporary = ShortScratch(NodeFolders(plan.directory)).string();
  TUTTI_RETURN_IF_ERROR(StageEnvironment(plan, cancelled, staged));
  for (const auto& [name, input] : plan.inputs) {
    if (input.absent) continue;
    TUTTI_ASSIGN_OR_RETURN(staged.inputs[name], StageInput(plan, name, input, cancelled));
  }
  for (const auto& [name, output] : plan.outputs) {
    const fs::path folder = NodeFolders(plan.directory).outputs() / name;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
    staged.outputs[name] = (output.file.empty() ? folder : folder / output.file).string();
  }
  TUTTI_ASSIGN_OR_RETURN(
      staged.command,
      spec::ExpandExpressions(plan.command, ValuesOf(plan, staged.inputs, staged.outputs)));
  return staged;
}

NodeFacts With(const Staged& staged, NodeFacts facts) {
  facts.inputs = staged.inputs;
  facts.outputs = staged.outputs;
  facts.temporary = staged.temporary;
  facts.python = staged.python;
  facts.image = staged.image;
  return facts;
}

}  // namespace tutti::launch
