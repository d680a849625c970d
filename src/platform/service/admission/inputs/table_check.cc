#include "platform/service/admission/inputs/table_check.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/machine/pattern_walk.h"
#include "base/status.h"
#include "platform/storage/input_request.h"
#include "platform/storage/storage_program.h"
#include "spec/data/table_file.h"
#include "spec/site/table_inputs.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatienceWithPattern = absl::Seconds(1);

absl::Status TableTooLarge(int64_t bytes) {
  return absl::InvalidArgumentError(absl::StrCat("its file MLTable has ", (bytes + 1023) / 1024,
                                                 " KiB, and may have ",
                                                 spec::kLargestTableFile / 1024));
}

// Nothing where there is no such file, which spec::CheckPaths tells.
absl::StatusOr<std::optional<std::string>> ReadLocal(const std::string& folder,
                                                     RemotePaths& paths) {
  TUTTI_ASSIGN_OR_RETURN(const auto visit, paths.Begin({folder}));
  const fs::path file = fs::path(folder) / spec::kTableFile;
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  if (!fs::is_regular_file(file, error)) {
    return absl::InvalidArgumentError(absl::StrCat(file.native(), " is no file"));
  }
  auto text = base::ReadFile(file, spec::kLargestTableFile);
  if (absl::IsResourceExhausted(text.status())) {
    return TableTooLarge(static_cast<int64_t>(fs::file_size(file, error)));
  }
  TUTTI_RETURN_IF_ERROR(text.status());
  return *std::move(text);
}

// The file MLTable of a table in a store.
spec::DataPlace FileOf(spec::DataPlace table) {
  absl::StrAppend(&table.path, table.path.empty() ? "" : "/", spec::kTableFile);
  return table;
}

absl::StatusOr<std::string> FetchFile(const storage::StorageRequest& stat,
                                      base::Deadline deadline) {
  static const std::atomic<bool> never = false;
  TUTTI_ASSIGN_OR_RETURN(const auto found, storage::RunStorage(stat, deadline, never, {}));
  if (found.bytes > static_cast<int64_t>(spec::kLargestTableFile))
    return TableTooLarge(found.bytes);
  try {
    const base::TemporaryDirectory folder("tutti-table");
    storage::StorageRequest fetch = stat;
    fetch.operation = storage::Operation::kFetch;
    fetch.folder = folder.path();
    // It may have grown since, or have no end.
    std::atomic<bool> is_too_large = false;
    int64_t size = 0;
    const auto fetched = storage::RunStorage(
        fetch, deadline, is_too_large, [&](const storage::StorageProgress& progress) {
          size = std::max({size, progress.bytes, progress.of_bytes});
          if (size > static_cast<int64_t>(spec::kLargestTableFile)) is_too_large = true;
        });
    if (is_too_large) return TableTooLarge(size);
    TUTTI_RETURN_IF_ERROR(fetched.status());
    return base::ReadFile(folder.path() / spec::kTableFile, spec::kLargestTableFile);
  } catch (const std::runtime_error& error) {
    return absl::UnavailableError(error.what());
  }
}

// One submission's tables. Those that several inputs name are read once.
class TableReader {
 public:
  TableReader(const spec::Site& site, const Secrets& secrets, RemotePaths& paths,
              base::Deadline deadline, base::Faults& faults)
      : site_(site), secrets_(secrets), paths_(paths), deadline_(deadline), faults_(faults) {}

  void ReadOf(spec::JobSpec& job) {
    for (spec::Step& step : job.steps) {
      RefuseBound(step);
      ReadOf(step.job);
    }
    if (job.kind == spec::JobKind::kPipeline) return;  // its steps have them
    std::map<std::string, spec::Input> named;
    for (auto& [name, input] : job.inputs) {
      if (!spec::IsEvaluated(input) || input.absent) continue;
      const absl::Status read = Read(name, input, named);
      if (!read.ok()) Refuse(name, input, read.message());
    }
    job.inputs.merge(named);
  }

 private:
  void Refuse(const std::string& name, const spec::Input& input, absl::string_view why) {
    for (const absl::string_view line : absl::StrSplit(why, '\n')) {
      faults_.Add(absl::InvalidArgumentError(absl::StrCat(
          input.location.file, ":", input.location.line, ": input \"", name, "\": ", line)));
    }
  }

  // What another step writes is not there yet.
  void RefuseBound(spec::Step& step) {
    for (auto& [name, input] : step.job.inputs) {
      if (!spec::IsEvaluated(input) || !step.inputs_from.contains(name)) continue;
      Refuse(name, input,
             absl::StrCat("mode ", input.mode,
                          " needs a table that is there when the job is submitted, and this one is "
                          "bound: take ro_mount, and read what its MLTable names in the step"));
      input.mode = "ro_mount";
    }
  }

  absl::Status Read(const std::string& name, spec::Input& table,
                    std::map<std::string, spec::Input>& named) {
    if (table.type != "mltable") {
      return absl::InvalidArgumentError(absl::StrCat(
          "mode ", table.mode, " is of type mltable alone, and it is of type ", table.type));
    }
    if (table.path.empty() && !table.place) return absl::OkStatus();  // it was refused
    TUTTI_ASSIGN_OR_RETURN(const std::optional<std::string> text, TextOf(table));
    if (!text) return absl::OkStatus();
    const std::string file = table.place ? storage::Described(FileOf(*table.place))
                                         : absl::StrCat(table.path, "/", spec::kTableFile);
    TUTTI_ASSIGN_OR_RETURN(const auto paths, spec::ReadTable(*text, file));
    TUTTI_ASSIGN_OR_RETURN(auto inputs, spec::TableInputs(paths, table, site_, file));
    for (size_t i = 0; i < inputs.size(); ++i) {
      spec::Input& input = inputs[i];
      const absl::Status matches =
          CheckMatches(input, absl::StrCat(file, ":", paths[i].line, ": "));
      if (!matches.ok()) Refuse(name, table, matches.message());
      input.table = name;
      input.mode = table.mode == "eval_mount" ? "ro_mount" : "download";
      input.location = table.location;
      named[absl::StrCat(name, ".paths[", i, "]")] = std::move(input);
    }
    table.path.clear();
    table.place.reset();
    return absl::OkStatus();
  }

  // Nothing if a secret is missing.
  absl::StatusOr<std::optional<std::string>> TextOf(const spec::Input& table) {
    if (!table.place) return ReadLocal(table.path, paths_);
    SecretValues values;
    if (const std::string& secret = table.place->secret; !secret.empty()) {
      auto known = secrets_.ValuesOf({secret});
      if (!known.ok()) return std::nullopt;
      values = *std::move(known);
    }
    spec::Input file = table;
    file.type = "uri_file";
    file.place = FileOf(*table.place);
    TUTTI_ASSIGN_OR_RETURN(const auto request,
                           storage::RequestFor(storage::Operation::kStat, file, values));
    const std::string which =
        absl::StrCat(spec::StoreOf(*file.place), "\n", file.place->path, "\n", file.place->secret);
    const auto [known, is_new] = texts_.try_emplace(which, "");
    if (is_new) known->second = FetchFile(request, deadline_);
    if (known->second.ok()) return *known->second;
    const absl::Status& status = known->second.status();
    return absl::Status(status.code(), absl::StrCat("its table cannot be read: ",
                                                    storage::InputFault(file, status)));
  }

  // A pattern in a folder of this machine matches a file; in one that is too large to say so within
  // a second it may.
  absl::Status CheckMatches(const spec::Input& input, const std::string& where) {
    if (input.pattern.empty()) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const auto visit, paths_.Begin({input.path}));
    const base::Deadline enough =
        base::Deadline::Sooner(deadline_, base::Deadline::After(kPatienceWithPattern));
    const absl::Status walk = base::WalkPattern(
        input.path, input.pattern, base::Wildcards::kClasses, [&] { return !enough.Expired(); },
        [](const fs::path&) { return absl::AlreadyExistsError("one is enough"); });
    if (absl::IsAlreadyExists(walk) || absl::IsCancelled(walk)) return absl::OkStatus();
    if (!walk.ok()) return absl::NotFoundError(absl::StrCat(where, walk.message()));
    return absl::NotFoundError(
        absl::StrCat(where, "no file of ", input.path, " matches ", input.pattern));
  }

  const spec::Site& site_;
  const Secrets& secrets_;
  RemotePaths& paths_;
  const base::Deadline deadline_;
  base::Faults& faults_;
  std::map<std::string, absl::StatusOr<std::string>> texts_;
};

}  // namespace

void ReadTables(spec::JobSpec& job, const spec::Site& site, const Secrets& secrets,
                RemotePaths& paths, base::Deadline deadline, base::Faults& faults) {
  TableReader(site, secrets, paths, deadline, faults).ReadOf(job);
}

}  // namespace tutti::service
