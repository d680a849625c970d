#include "platform/launch/staging/remote_input.h"

#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/at_once.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/http/fetch.h"
#include "platform/http/url.h"
#include "spec/site/data_map.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatience = absl::Seconds(10);  // with a server's first answer
constexpr size_t kLongestName = 128;
constexpr size_t kMostAtOnce = 16;

// The file's name, as programs that look at its ending expect it.
std::string FileNameOf(absl::string_view url) {
  const absl::string_view path = url.substr(0, url.find_first_of("?#"));
  const auto name = http::PercentDecode(path.substr(path.rfind('/') + 1));
  const bool safe = name.ok() && !name->empty() && name->size() <= kLongestName && *name != "." &&
                    *name != ".." && name->find('/') == std::string::npos;
  return safe ? *name : "data";
}

// Without the query of a signed address, which differs between signatures of one and the same file,
// where the server tells contents apart by other means. Other queries may name other files.
std::string KeyOfContent(const std::string& url, const http::RemoteFile& remote) {
  const bool is_signed = absl::StrContains(url, "sig=") ||
                         absl::StrContains(url, "X-Amz-Signature=") ||
                         absl::StrContains(url, "X-Goog-Signature=");
  const std::string address =
      is_signed && !remote.validator.empty() ? url.substr(0, url.find('?')) : url;
  const std::string text = absl::StrCat(address, "\n", remote.validator, "\n", remote.bytes);
  return base::Hex(base::Sha256Of(text)).substr(0, 24);
}

std::string Why(const spec::Input& input, const absl::Status& status) {
  return absl::StrCat(spec::ShownAddress(input.path), " cannot be had: ", status.message(),
                      "; copy it here and say where: tutti data map ",
                      spec::PrefixToMap(input.path), " FOLDER");
}

using Answers = std::map<std::string, absl::Status>;  // by address

void Collect(const spec::JobSpec& job, Answers& answers) {
  for (const auto& [name, input] : job.inputs) {
    if (IsRemote(input)) answers.try_emplace(input.path);
  }
  for (const spec::Step& step : job.steps) Collect(step.job, answers);
}

// Several servers at a time, all by one deadline.
void AskAll(Answers& answers, base::Deadline deadline) {
  static const std::atomic<bool> never = false;
  std::vector<Answers::value_type*> list;
  for (auto& entry : answers) list.push_back(&entry);
  base::ForEachAtOnce(list.size(), kMostAtOnce, [&](size_t i) {
    list[i]->second = http::Examine(list[i]->first, deadline, never).status();
  });
}

struct Findings {
  std::vector<std::string> faults;
  std::vector<std::string>& warnings;
};

void Report(const spec::JobSpec& job, const Answers& answers, Findings& findings) {
  for (const auto& [name, input] : job.inputs) {
    const auto answer = answers.find(input.path);
    if (answer == answers.end() || answer->second.ok()) continue;
    const std::string text = absl::StrCat(input.place.file, ":", input.place.line, ": input \"",
                                          name, "\": ", Why(input, answer->second));
    if (absl::IsDeadlineExceeded(answer->second)) {
      findings.warnings.push_back(text);
    } else if (absl::IsUnavailable(answer->second) && job.compute != "local") {
      findings.warnings.push_back(absl::StrCat(text, "; the nodes of compute \"", job.compute,
                                               "\" may reach it all the same"));
    } else {
      findings.faults.push_back(text);
    }
  }
  for (const spec::Step& step : job.steps) Report(step.job, answers, findings);
}

}  // namespace

bool IsRemote(const spec::Input& input) {
  return absl::StartsWith(input.path, "http://") || absl::StartsWith(input.path, "https://");
}

absl::StatusOr<fs::path> FetchInput(const std::string& name, const spec::Input& input,
                                    const fs::path& data, const std::atomic<bool>& cancelled) {
  const auto failed = [&](const absl::Status& status) {
    if (absl::IsCancelled(status)) return status;
    return absl::Status(status.code(), absl::StrCat("input \"", name, "\": ", Why(input, status)));
  };
  const auto remote = http::Examine(input.path, base::Deadline::After(kPatience), cancelled);
  if (!remote.ok()) return failed(remote.status());
  const std::string key = KeyOfContent(input.path, *remote);
  const fs::path file = data / key / FileNameOf(input.path);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         base::LockFile(data / absl::StrCat(key, ".lock"), cancelled));
  std::error_code error;
  // Of a content that its server does not tell from another there is no keeping.
  if (fs::exists(file, error) && !remote->validator.empty()) return file;
  const absl::Status fetched = http::FetchFile(input.path, file, {}, cancelled);
  if (!fetched.ok()) return failed(fetched);
  return file;
}

absl::Status CheckRemoteInputs(const spec::JobSpec& job, base::Deadline deadline,
                               std::vector<std::string>& warnings) {
  Answers answers;
  Collect(job, answers);
  AskAll(answers, deadline);
  Findings findings{{}, warnings};
  Report(job, answers, findings);
  if (findings.faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(findings.faults, "\n"));
}

}  // namespace tutti::launch
