#include "platform/client/submit/user_job.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/script/script_file.h"
#include "platform/client/submit/job_text.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestJobFile = 1 << 20;  // what the service takes

// A script's options say nothing to a job file, which has keys for them.
absl::StatusOr<UserJob> ReadText(const JobFile& file) {
  const auto content = base::ReadFile(file.path, kLargestJobFile);
  if (!content.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the job file or script: ", content.status().message()));
  }
  if (const std::string option = file.script.Given(); !option.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path, " is read as a job file, and ", option, " is for scripts; write it there, or ",
        "change its keys by --set, as in --set resources.instance_count=2"));
  }
  return UserJob{
      .text = *content, .path = file.path, .directory = fs::absolute(file.path).parent_path()};
}

// Returns the job file that a script stands for.
absl::StatusOr<UserJob> WriteText(const JobFile& file) {
  ScriptOptions options = file.script;
  options.sends_other_code =
      std::any_of(file.settings.begin(), file.settings.end(),
                  [](const std::string& setting) { return absl::StartsWith(setting, "code="); });
  TUTTI_ASSIGN_OR_RETURN(ScriptJob job, JobOfScript(file.path, options));
  return UserJob{.text = std::move(job.text),
                 .path = absl::StrCat("job of ", file.path),
                 .directory = std::move(job.directory),
                 .remarks = std::move(job.remarks),
                 .script = file.path,
                 .origin = {{"program", job.program}}};
}

// Returns the job file that a job of Batch AI has become.
UserJob ConvertedText(const JobFile& file) {
  UserJob job{.text = file.batch_ai->text,
              .path = absl::StrCat("job of ", file.path),
              .directory = fs::absolute(file.path).parent_path(),
              .script = file.path};
  for (const std::string& warning : file.batch_ai->warnings) {
    job.remarks.push_back(absl::StrCat("warning: ", warning));
  }
  return job;
}

// "job of train.py:10: --gpus=2 (docker_args) asks …" is "--gpus 2 asks …".
std::string InOptions(absl::string_view line) {
  constexpr absl::string_view kOption = ": --gpus=", kKey = " (docker_args)";
  const size_t option = line.find(kOption), key = line.find(kKey);
  if (option == absl::string_view::npos || key == absl::string_view::npos || key < option) {
    return std::string(line);
  }
  const size_t number = option + kOption.size();
  return absl::StrCat("--gpus ", line.substr(number, key - number), line.substr(key + kKey.size()));
}

// "job.yml:7: resources.properties.tutti.memory: "x" is no size" is "--memory: "x" is no size"
// where that option has set the key.
std::string OfOptions(absl::string_view line, const UserJob& written) {
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, absl::StrCat(written.path, ":"))) return std::string(line);
  rest.remove_prefix(std::min(rest.find_first_not_of("0123456789"), rest.size()));
  absl::ConsumePrefix(&rest, ": ");
  for (const KeyOption& option : written.keys) {
    absl::string_view said = rest;
    const bool is_its = absl::ConsumePrefix(&said, option.key) && !said.empty() &&
                        (said[0] == ' ' || said[0] == ':');
    if (is_its) return absl::StrCat(option.option, said);
  }
  return std::string(line);
}

// Leaves the check to the service, which alone knows the models.
absl::StatusOr<spec::ModelHere> LeftToTheService(const spec::AssetReference& reference) {
  return spec::ModelHere{.version = reference.version};
}

// A file that is written only once the job is taken is not there to look at.
std::string InPlaceOf(absl::string_view unsaved, absl::string_view script, absl::string_view line) {
  const std::string place = absl::StrCat(unsaved, ":");
  if (unsaved.empty() || !absl::ConsumePrefix(&line, place)) return std::string(line);
  return absl::StrCat("job of ", script, ":", line);
}

}  // namespace

absl::StatusOr<UserJob> ReadUserJob(const fs::path& home, const JobFile& file) {
  const bool is_script = !file.batch_ai && KindOfScript(file.path) != ScriptKind::kNone;
  TUTTI_ASSIGN_OR_RETURN(UserJob written, file.batch_ai
                                              ? absl::StatusOr<UserJob>(ConvertedText(file))
                                          : is_script ? WriteText(file)
                                                      : ReadText(file));
  written.keys = file.keys;
  TUTTI_ASSIGN_OR_RETURN(written.text, ApplyOptions(written.text, file.keys));
  TUTTI_ASSIGN_OR_RETURN(written.text, ApplySettings(written.text, file.settings));
  if (const std::string& save = file.script.save; !save.empty()) {
    TUTTI_RETURN_IF_ERROR(CheckCanSave(written.text, save));
    written.path = written.save = save;
  }
  TUTTI_ASSIGN_OR_RETURN(spec::Site site, spec::ReadSite(home, spec::AnyContainerLeave()));
  site.find_model = LeftToTheService;
  written.file = spec::ReadAllOfJobFile(written.text, written.path, written.directory, site);
  return written;
}

std::string SaveTaken(const UserJob& written) {
  if (written.save.empty()) return "";
  const absl::Status saved = SaveJob(written.text, written.save);
  if (!saved.ok()) return absl::StrCat("warning: not saved: ", saved.message());
  return absl::StrCat("saved: ", written.save, "; tutti run ", written.save, " is the same job");
}

absl::Status AsTheUserWroteIt(const absl::Status& status, const UserJob& written) {
  if (status.ok() || (written.script.empty() && written.keys.empty())) return status;
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    lines.push_back(AsTheUserWroteIt(line, written));
  }
  return absl::Status(status.code(), absl::StrJoin(lines, "\n"));
}

std::string AsTheUserWroteIt(absl::string_view line, const UserJob& written) {
  const std::string told = OfOptions(line, written);
  if (written.script.empty()) return told;
  return InOptions(InPlaceOf(written.save, written.script, told));
}

}  // namespace tutti::client
