// `tutti score`: tutti-score, to which models come by the names that the service knows them by. It
// fetches them once, into this user's cache, and tutti-score needs no service.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/results/download.h"
#include "spec/data/data_map.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr char kScheme[] = "azureml:";
constexpr char kManifest[] = "manifest.json";

// A model on this machine, with the name and version that the service has for it.
struct FetchedModel {
  fs::path folder;
  std::string name, version;
};

absl::StatusOr<fs::path> CacheFolder() {
  const char* const caches = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  if (caches != nullptr && *caches == '/') return fs::path(caches) / "tutti/scored-models";
  if (home != nullptr && *home == '/') return fs::path(home) / ".cache/tutti/scored-models";
  return absl::FailedPreconditionError("HOME is not set, below which models are kept");
}

// Fetches files below `folder`, which is there only once it is whole.
absl::Status FetchOnce(Context& context, const std::string& what, const FetchFile& fetch,
                       const std::vector<FileView>& files, const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) return absl::OkStatus();
  context.err << "fetching " << what << " to " << folder.string() << "\n";
  const fs::path part = absl::StrCat(folder.string(), ".", ::getpid());
  const absl::Status fetched = DownloadFiles(fetch, files, part, [](const FileView&, uint64_t) {});
  if (fetched.ok()) fs::rename(part, folder, error);
  base::RemoveTree(part).IgnoreError();  // what came by half, or what another one had whole before
  if (!fetched.ok()) return base::Annotate(fetched, what);
  return fs::exists(folder) ? absl::OkStatus() : base::ErrnoStatus(folder.string(), error.value());
}

// "azureml:NAME", "azureml:NAME:VERSION" or "azureml:NAME@LABEL".
absl::StatusOr<FetchedModel> FetchRegistered(Context& context, absl::string_view address) {
  std::string name(absl::StripPrefix(address, kScheme)), version = "@latest";
  if (const size_t at = name.find_first_of(":@"); at != std::string::npos) {
    version = name.substr(name[at] == ':' ? at + 1 : at);
    name.resize(at);
  }
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.ModelVersion(name, version));
  TUTTI_ASSIGN_OR_RETURN(const ModelVersionView view, Parse<ModelVersionView>(text));
  TUTTI_ASSIGN_OR_RETURN(const fs::path cache, CacheFolder());
  FetchedModel model{cache / base::Hex(base::Sha256Of(view.digest)), view.name, view.version};
  std::vector<FileView> files;
  if (view.files) files.assign(view.files->begin(), view.files->end());
  TUTTI_RETURN_IF_ERROR(FetchOnce(
      context, view.id,
      [&](const std::string& path, http::ChunkCallback on_chunk) {
        return service.ModelFile(view.name, view.version, path, std::move(on_chunk));
      },
      files, model.folder));
  return model;
}

// "azureml://jobs/JOB/outputs/NAME/paths/PATH". What a job has left may change while it runs: it is
// kept by its manifest, which has the hash of each file, and without one fetched each time.
absl::StatusOr<FetchedModel> FetchOutput(Context& context, absl::string_view address) {
  TUTTI_ASSIGN_OR_RETURN(const spec::JobOutput output, spec::OutputOfAddress(address));
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Files(output.job));
  TUTTI_ASSIGN_OR_RETURN(const FilesView view, Parse<FilesView>(text));
  const std::string below = absl::StrCat(absl::StripSuffix(output.path, "/"), "/");
  std::vector<FileView> files;
  bool has_manifest = false;
  for (FileView file : view.files) {
    if (!absl::StartsWith(file.path, below)) continue;
    file.path.erase(0, below.size());
    has_manifest |= file.path == kManifest;
    files.push_back(std::move(file));
  }
  if (files.empty()) {
    return absl::NotFoundError(absl::StrCat("job ", output.job, " has left nothing in ",
                                            output.path, ": tutti job show ", output.job,
                                            " lists its files"));
  }
  std::string key = absl::StrCat(output.job, "\n", below);
  if (has_manifest) {
    TUTTI_RETURN_IF_ERROR(
        service.File(output.job, below + kManifest, [&key](absl::string_view piece) {
          absl::StrAppend(&key, piece);
          return absl::OkStatus();
        }));
  }
  TUTTI_ASSIGN_OR_RETURN(const fs::path cache, CacheFolder());
  FetchedModel model{cache / base::Hex(base::Sha256Of(key)), output.job, ""};
  if (!has_manifest) TUTTI_RETURN_IF_ERROR(base::RemoveTree(model.folder));
  TUTTI_RETURN_IF_ERROR(FetchOnce(
      context, std::string(address),
      [&](const std::string& path, http::ChunkCallback on_chunk) {
        return service.File(output.job, below + path, std::move(on_chunk));
      },
      files, model.folder));
  return model;
}

absl::StatusOr<FetchedModel> FetchModel(Context& context, absl::string_view address) {
  return absl::StartsWith(address, "azureml://") ? FetchOutput(context, address)
                                                 : FetchRegistered(context, address);
}

}  // namespace

absl::StatusOr<ExitCode> Score(Context& context, std::vector<std::string> arguments) {
  const bool serves = !arguments.empty() && arguments[0] == "serve";
  for (std::string& argument : arguments) {
    const size_t at = argument.find(kScheme);
    const bool is_first = at == 0;
    // "--model=azureml:…" and "NAME=azureml:…" keep what stands before the address.
    if (at == std::string::npos || (!is_first && argument[at - 1] != '=')) continue;
    TUTTI_ASSIGN_OR_RETURN(const FetchedModel model, FetchModel(context, argument.substr(at)));
    std::string before = argument.substr(0, at);
    if (serves && is_first) {
      before = absl::StrCat(model.name, model.version.empty() ? "" : ":", model.version, "=");
    }
    argument = before + model.folder.string();
  }
  return RunBeside(context, "tutti-score", arguments);
}

}  // namespace tutti::client
