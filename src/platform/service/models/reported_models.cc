#include "platform/service/models/reported_models.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/logs/growing_file.h"
#include "platform/service/logs/job_logs.h"
#include "platform/service/models/job_model.h"
#include "spec/json/json_fields.h"

namespace tutti::service {
namespace {

using nlohmann::json;

constexpr size_t kMostNotes = 3, kLongestNamed = 100, kLongestFault = 300;

absl::StatusOr<ReportedModel> ModelIn(const json& line) {
  ReportedModel model;
  spec::JsonFields fields(line, "", spec::Missing::kIsAnError);
  for (const char* const known : {"event", "time"}) fields.Ignore(known);
  fields.Read("name", model.creation.name);
  fields.Read("path", model.path);
  fields.ReadIfThere("type", model.creation.type);
  fields.ReadIfThere("description", model.creation.description);
  fields.ReadIfThere("tags", model.creation.tags);
  fields.ReadIfThere("properties", model.creation.properties);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  model.path = std::string(absl::StripSuffix(model.path, "/"));
  return model;
}

// Takes a line of a rank's file, if it is one that asks for a model.
void TakeLine(absl::string_view text, ReportedModels& of_rank) {
  if (!absl::StrContains(text, "\"model\"")) return;
  const json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || line.value("event", json()) != "model") return;
  auto model = ModelIn(line);
  if (!model.ok()) {
    if (of_rank.fault.empty()) of_rank.fault = std::string(model.status().message());
    return;
  }
  std::erase_if(of_rank.models, [&](const ReportedModel& earlier) {
    return earlier.creation.name == model->creation.name && earlier.path == model->path;
  });
  if (of_rank.models.size() == kMostReportedModels) {
    ++of_rank.left_out;
  } else {
    of_rank.models.push_back(*std::move(model));
  }
}

// Adds what a higher rank has reported and no lower one.
void AddRank(ReportedModels of_rank, ReportedModels& all) {
  all.left_out = std::max(all.left_out, of_rank.left_out);  // the ranks may all say the same
  if (all.fault.empty()) all.fault = std::move(of_rank.fault);
  for (ReportedModel& model : of_rank.models) {
    const bool is_there =
        std::any_of(all.models.begin(), all.models.end(), [&](const ReportedModel& known) {
          return known.creation.name == model.creation.name && known.path == model.path;
        });
    if (is_there) continue;
    if (all.models.size() == kMostReportedModels) {
      ++all.left_out;
    } else {
      all.models.push_back(std::move(model));
    }
  }
}

// Another job, also a later one of the same name, has other nonces.
std::string NonceOf(const store::Job& job, const ReportedModel& model) {
  const json of = {job.id, job.sequence, absl::ToUnixMicros(job.created), model.creation.name,
                   model.path};
  return absl::StrCat("job-", base::Hex(base::Sha256Of(of.dump())));
}

std::string NoteOf(const store::Job& job, const ReportedModel& model, const absl::Status& why) {
  const std::string name = base::BoundedUtf8(model.creation.name, kLongestNamed);
  const std::string path = base::BoundedUtf8(model.path, kLongestNamed);
  return absl::StrCat("model ", name,
                      " is not registered: ", base::BoundedUtf8(why.message(), kLongestFault),
                      " (by hand: tutti model register --from-job ", job.id, " --path ", path,
                      " --name ", name, ")");
}

}  // namespace

absl::StatusOr<ReportedModels> ReadReportedModels(const std::filesystem::path& logs) {
  ReportedModels all;
  TUTTI_ASSIGN_OR_RETURN(const auto files, RankFiles(logs, LogStream::kMetrics));
  for (const auto& [rank, path] : files) {
    ReportedModels of_rank;
    GrowingFile file(path);
    TUTTI_RETURN_IF_ERROR(file.ReadOn(/*to_the_end=*/true,
                                      [&](absl::string_view lines, uint64_t) {
                                        if (!absl::StrContains(lines, "\"model\"")) return;
                                        for (const absl::string_view line :
                                             absl::StrSplit(lines, '\n')) {
                                          TakeLine(line, of_rank);
                                        }
                                      })
                              .status());
    AddRank(std::move(of_rank), all);
  }
  return all;
}

std::vector<std::string> RegisterReportedModels(const JobFiles& files, RegisteredModels& models,
                                                const store::Job& job) {
  std::vector<std::string> notes;
  auto reported = ReadReportedModels(files.FolderOf(job.id) / "logs");
  if (!reported.ok()) {
    return {absl::StrCat("whether it registers models cannot be read: ",
                         base::BoundedUtf8(reported.status().message(), kLongestFault))};
  }
  for (ReportedModel& model : reported->models) {
    ModelCreation creation = model.creation;
    creation.nonce = NonceOf(job, model);
    const auto made = RegisterResults(files, models, std::move(creation), job, model.path);
    if (made.ok()) {
      spdlog::info("job {}: model {}:{} is registered", job.id, made->version.name,
                   made->version.version);
    } else {
      notes.push_back(NoteOf(job, model, made.status()));
    }
  }
  if (notes.size() > kMostNotes) {
    const size_t more = notes.size() - kMostNotes;
    notes.resize(kMostNotes);
    notes.push_back(absl::StrCat("and ", more, " more models are not registered"));
  }
  if (reported->left_out > 0) {
    notes.push_back(absl::StrCat("a job registers at most ", kMostReportedModels,
                                 " models: ", reported->left_out, " more are not registered"));
  }
  if (!reported->fault.empty()) {
    notes.push_back(absl::StrCat("a line of its metrics file that registers a model is wrong: ",
                                 base::BoundedUtf8(reported->fault, kLongestFault)));
  }
  return notes;
}

}  // namespace tutti::service
