#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/models/local_model.h"
#include "platform/client/results/download.h"
#include "platform/client/submit/create_job.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/live_text.h"
#include "platform/client/text/table.h"
#include "spec/file/model_file.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kModelNonceBytes = 16;
constexpr int kModelPage = 1000;
constexpr size_t kMostShown = 20;  // files

// A file that is missing is a fault of what the user gave.
absl::Status AsUsersFault(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::InvalidArgumentError(status.message()) : status;
}

absl::StatusOr<std::map<std::string, std::string>> TagsOf(const std::vector<std::string>& tags) {
  std::map<std::string, std::string> texts;
  for (const std::string& tag : tags) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(tag, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.first.size() == tag.size()) {
      return absl::InvalidArgumentError(absl::StrCat("--tag ", tag, ": write KEY=VALUE"));
    }
    texts[parts.first] = parts.second;
  }
  return texts;
}

// Reads the file, over which the command line takes precedence.
absl::StatusOr<spec::ModelFile> ModelOf(const ModelOptions& options) {
  spec::ModelFile model;
  if (!options.file.empty()) {
    auto read = spec::ReadModelFile(options.file);
    TUTTI_RETURN_IF_ERROR(AsUsersFault(read.status()));
    model = *std::move(read);
  }
  for (const auto& [value, target] : {std::pair(&options.name, &model.name),
                                      {&options.version, &model.version},
                                      {&options.type, &model.type},
                                      {&options.description, &model.description},
                                      {&options.stage, &model.stage}}) {
    if (!value->empty()) *target = *value;
  }
  TUTTI_ASSIGN_OR_RETURN(const auto tags, TagsOf(options.tags));
  for (const auto& [key, value] : tags) model.tags[key] = value;
  if (!options.job.empty()) {
    model.job = options.job;
    model.path_of_job = options.path;
    model.path.clear();
  } else if (!options.path.empty()) {
    model.path = fs::absolute(options.path).lexically_normal();
    model.job.clear();
  }
  if (model.name.empty()) {
    return absl::InvalidArgumentError("the model has no name: give --name NAME, or a --file");
  }
  if (model.path.empty() && model.path_of_job.empty()) {
    return absl::InvalidArgumentError(
        "the model has no path: give --path PATH, or --from-job JOB with --path outputs/PATH, or a "
        "--file");
  }
  return model;
}

// As POST /v1/models has it.
json RegistrationOf(const spec::ModelFile& model) {
  return {{"name", model.name},
          {"type", model.type},
          {"description", model.description},
          {"stage", model.stage},
          {"tags", model.tags},
          {"properties", model.properties},
          {"nonce", base::RandomHex(kModelNonceBytes)}};
}

absl::Status SendModelFiles(Context& context, ServiceClient& service, const std::string& path,
                            json& registration) {
  const auto read = ReadLocalModel(path);
  TUTTI_RETURN_IF_ERROR(AsUsersFault(read.status()));
  LiveText text(context.err, context.err_screen);
  const int width = text.screen().width;
  uint64_t bytes = 0;
  TUTTI_RETURN_IF_ERROR(SendModel(service, *read, [&](const LocalModelFile& file) {
    text.SetStatus(
        Shorten(absl::StrCat(Bytes(bytes), " of ", Bytes(read->bytes), "  ", Printable(file.path)),
                width - 1));
    text.Flush();
    bytes += file.bytes;
  }));
  registration["is_file"] = read->is_file;
  json& files = registration["files"] = json::array();
  for (const LocalModelFile& file : read->files) {
    files.push_back({{"path", file.path}, {"sha256", file.sha256}, {"bytes", file.bytes}});
  }
  return absl::OkStatus();
}

std::string SizeOf(const ModelVersionView& version) {
  return absl::StrCat(WithCommas(version.file_count),
                      version.file_count == 1 ? " file, " : " files, ", Bytes(version.bytes));
}

// As the service's calls have it; empty: the newest.
std::string VersionOf(const ModelOptions& options) {
  if (!options.label.empty()) return absl::StrCat("@", options.label);
  return options.version.empty() ? "@latest" : options.version;
}

// A line each: {"job", "train-1"}; none of a version that no job has left.
std::vector<std::pair<std::string, std::string>> LineageLines(const ModelVersionView& version) {
  const auto lineage = Parse<spec::LineageView>(version.lineage.text);
  if (!lineage.ok()) return {};
  std::vector<std::pair<std::string, std::string>> lines = {
      {"job", lineage->job},
      {"path", lineage->path},
      {"submitted", lineage->submitted},
      {"experiment", lineage->experiment},
      {"command", lineage->command},
      {"code", lineage->code},
      {"environment", lineage->environment.name}};
  std::erase_if(lines, [](const auto& line) { return line.second.empty(); });
  for (const spec::LineageInputView& data : lineage->data) {
    lines.emplace_back("data", absl::StrCat(data.input, ": ", data.asset,
                                            data.asset.empty() ? "" : " = ", data.address));
  }
  for (const auto& [name, value] : lineage->values) {
    lines.emplace_back("value", absl::StrCat(name, "=", value));
  }
  return lines;
}

std::vector<FileView> FilesOf(const ModelVersionView& version) {
  if (!version.files) return {};
  return {version.files->begin(), version.files->end()};
}

template <class Pairs>
void ShowPairs(Context& context, const char* title, const Pairs& pairs) {
  if (pairs.empty()) return;
  context.out << title << "\n";
  for (const auto& [name, value] : pairs) {
    context.out << "  " << PadRight(Printable(name), 12) << "  " << Printable(value) << "\n";
  }
}

void ShowVersion(Context& context, const ModelVersionView& version) {
  context.out << "azureml:" << Printable(version.name) << ":" << Printable(version.version) << "\n";
  std::vector<std::pair<std::string, std::string>> lines = {
      {"type", version.type}, {"created", version.created}, {"content", SizeOf(version)}};
  if (!version.stage.empty()) lines.emplace_back("stage", version.stage);
  if (!version.aliases.empty()) lines.emplace_back("aliases", absl::StrJoin(version.aliases, ", "));
  if (version.archived) lines.emplace_back("archived", "yes");
  if (!version.description.empty()) lines.emplace_back("description", version.description);
  for (const auto& [name, value] : lines) {
    context.out << PadRight(name, 12) << "  " << Printable(value) << "\n";
  }
  ShowPairs(context, "tags", version.tags);
  ShowPairs(context, "properties", version.properties);
  ShowPairs(context, "made by", LineageLines(version));
  context.out << "files\n";
  const std::vector<FileView> files = FilesOf(version);
  for (size_t i = 0; i < files.size() && i < kMostShown; ++i) {
    const FileView& file = files[i];
    context.out << "  " << PadLeft(Bytes(file.bytes), 8) << "  " << Printable(file.path) << "\n";
  }
  if (files.size() > kMostShown) {
    context.out << "  and " << files.size() - kMostShown << " more (-o json)\n";
  }
}

// The list of an answer, as it is.
json ListIn(const std::string& text, const char* key) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_object() ? document.value(key, json::array()) : json::array();
}

absl::StatusOr<ExitCode> ListNames(Context& context, ServiceClient& service,
                                   const ModelOptions& options) {
  Table table({{"NAME"},
               {"LATEST"},
               {"VERSIONS", Table::Align::kRight},
               {"CREATED"},
               {"DESCRIPTION", Table::Align::kLeft, true}});
  json all = json::array();
  for (std::string after;;) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text,
                           service.Models(options.archived ? "all" : "false", after, kModelPage));
    TUTTI_ASSIGN_OR_RETURN(const ModelsView page, Parse<ModelsView>(text));
    after = page.after;
    for (const ModelView& model : page.models) {
      table.Add({{absl::StrCat(model.name, model.archived ? " (archived)" : "")},
                 {model.latest},
                 {WithCommas(model.versions)},
                 {model.created.substr(0, sizeof "2026-01-01" - 1)},
                 {model.description}});
    }
    for (const json& model : ListIn(text, "models")) all.push_back(model);
    if (after.empty()) break;
  }
  if (options.format != Format::kTable) {
    const json document = {{"models", std::move(all)}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ListVersions(Context& context, ServiceClient& service,
                                      const ModelOptions& options) {
  Table table({{"VERSION"},
               {"TYPE"},
               {"STAGE"},
               {"ALIASES"},
               {"SIZE", Table::Align::kRight},
               {"CREATED"},
               {"DESCRIPTION", Table::Align::kLeft, true}});
  json all = json::array();
  for (int64_t before = 0;;) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text,
                           service.ModelVersions(options.name, before, kModelPage));
    TUTTI_ASSIGN_OR_RETURN(const ModelVersionsView page, Parse<ModelVersionsView>(text));
    const std::vector<ModelVersionView>& versions = page.versions;
    before = page.before.value_or(0);
    const json listed = ListIn(text, "versions");
    for (size_t i = 0; i < versions.size(); ++i) {
      const ModelVersionView& version = versions[i];
      if (version.archived && !options.archived) continue;
      if (i < listed.size()) all.push_back(listed[i]);
      table.Add({{absl::StrCat(version.version, version.archived ? " (archived)" : "")},
                 {version.type},
                 {version.stage},
                 {absl::StrJoin(version.aliases, ",")},
                 {Bytes(version.bytes)},
                 {version.created.substr(0, sizeof "2026-01-01" - 1)},
                 {version.description}});
    }
    if (before == 0) break;
  }
  if (options.format != Format::kTable) {
    const json document = {{"versions", std::move(all)}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ChangeArchived(Context& context, const ModelOptions& options,
                                        bool archived) {
  ServiceClient service(context.connect());
  const std::string version = options.label.empty() ? options.version : VersionOf(options);
  const json change = {{"archived", archived}};
  TUTTI_RETURN_IF_ERROR(service.ChangeModel(options.name, version, change.dump()).status());
  return ExitCode::kOk;
}

}  // namespace

absl::StatusOr<ExitCode> ModelRegister(Context& context, const ModelOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::ModelFile model, ModelOf(options));
  for (const std::string& warning : model.warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  ServiceClient service(context.connect());
  json registration = RegistrationOf(model);
  if (!model.version.empty()) registration["version"] = model.version;
  if (model.job.empty()) {
    TUTTI_RETURN_IF_ERROR(SendModelFiles(context, service, model.path, registration));
  } else {
    TUTTI_ASSIGN_OR_RETURN(registration["job"], ResolveJob(service, model.job));
    registration["path"] = model.path_of_job;
  }
  const std::string body = registration.dump();
  TUTTI_ASSIGN_OR_RETURN(
      const std::string text,
      CallOnce(
          service, context.connect,
          [&](ServiceClient& client, bool* asked) { return client.RegisterModel(body, asked); },
          "the model may be registered: tutti model list shows it", context.err));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const ModelVersionView made, Parse<ModelVersionView>(text));
  context.out << "azureml:" << Printable(made.name) << ":" << Printable(made.version)
              << " is registered (" << SizeOf(made) << ")\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ModelList(Context& context, const ModelOptions& options) {
  ServiceClient service(context.connect());
  return options.name.empty() ? ListNames(context, service, options)
                              : ListVersions(context, service, options);
}

absl::StatusOr<ExitCode> ModelShow(Context& context, const ModelOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         service.ModelVersion(options.name, VersionOf(options)));
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const ModelVersionView version, Parse<ModelVersionView>(text));
  ShowVersion(context, version);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ModelDownload(Context& context, const ModelOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         service.ModelVersion(options.name, VersionOf(options)));
  TUTTI_ASSIGN_OR_RETURN(const ModelVersionView version, Parse<ModelVersionView>(text));
  // A folder of its own: what lies beside stays.
  const fs::path folder =
      fs::path(options.directory.empty() ? "." : options.directory) / version.name;
  LiveText live(context.err, context.err_screen);
  const int width = live.screen().width;
  const auto fetch = [&](const std::string& path, http::ChunkCallback on_chunk) {
    return service.ModelFile(version.name, version.version, path, std::move(on_chunk));
  };
  TUTTI_RETURN_IF_ERROR(
      DownloadFiles(fetch, FilesOf(version), folder, [&](const FileView& file, uint64_t bytes) {
        live.SetStatus(
            Shorten(absl::StrCat(Bytes(bytes), " of ", Printable(file.path)), width - 1));
        live.Flush();
      }));
  context.err << SizeOf(version) << " in " << folder.string() << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ModelArchive(Context& context, const ModelOptions& options) {
  return ChangeArchived(context, options, /*archived=*/true);
}

absl::StatusOr<ExitCode> ModelRestore(Context& context, const ModelOptions& options) {
  return ChangeArchived(context, options, /*archived=*/false);
}

absl::StatusOr<ExitCode> ModelUpdate(Context& context, const ModelOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text,
                         service.ModelVersion(options.name, VersionOf(options)));
  TUTTI_ASSIGN_OR_RETURN(const ModelVersionView version, Parse<ModelVersionView>(text));
  json change = json::object();
  if (!options.stage.empty()) change["stage"] = options.stage;
  if (!options.description.empty()) change["description"] = options.description;
  TUTTI_ASSIGN_OR_RETURN(auto tags, TagsOf(options.tags));
  if (!tags.empty()) {
    tags.insert(version.tags.begin(), version.tags.end());  // those that are not said stay
    change["tags"] = tags;
  }
  if (!change.empty()) {
    TUTTI_RETURN_IF_ERROR(
        service.ChangeModel(version.name, version.version, change.dump()).status());
  }
  for (const std::string& alias : options.aliases) {
    TUTTI_RETURN_IF_ERROR(service.SetModelAlias(version.name, alias, version.version));
  }
  for (const std::string& alias : options.removed_aliases) {
    TUTTI_RETURN_IF_ERROR(service.RemoveModelAlias(version.name, alias));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ModelDelete(Context& context, const ModelOptions& options) {
  const std::string what = options.version.empty()
                               ? absl::StrCat("model ", options.name, " with all its versions")
                               : absl::StrCat("model ", options.name, ":", options.version);
  TUTTI_ASSIGN_OR_RETURN(
      const bool may,
      MayRemove(context, options.yes, absl::StrCat("Delete ", what, " and its files?")));
  if (!may) return ExitCode::kOk;
  ServiceClient service(context.connect());
  TUTTI_RETURN_IF_ERROR(service.DeleteModel(options.name, options.version));
  return ExitCode::kOk;
}

}  // namespace tutti::client
