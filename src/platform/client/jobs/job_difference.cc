#include "platform/client/jobs/job_difference.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/client/archive/snapshot_files.h"
#include "platform/client/jobs/code_difference.h"
#include "platform/client/text/columns.h"
#include "spec/environment/docker_stages.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using NamedTexts = std::map<std::string, std::string>;

constexpr absl::Duration kPatienceWithDiff = absl::Minutes(1);
constexpr size_t kMostInstalled = 4 << 20;  // bytes
constexpr size_t kLongestEntry = 100;       // of one line, in characters

// Returns whether a field of a job as it was read is what no key of its file says: where something
// is written, or what is compared by itself. A user's own names are none.
bool IsOfNoKey(const std::string& within, const std::string& name, const json& value) {
  static const std::set<std::string> kNames = {"file_name", "directory", "command_line",
                                               "code_line", "line",      "is_host",
                                               "snapshot",  "place"};
  if (within.empty() && name == "origin") return true;
  if (absl::EndsWith(within, "environment_variables") || absl::EndsWith(within, "tags"))
    return false;
  return (!value.is_object() && kNames.count(name) > 0) || (name == "absent" && value == false);
}

// Returns the requirement's package: "torch" of "torch==2.3".
std::string PackageOf(const std::string& requirement) {
  const auto end = std::find_if_not(requirement.begin(), requirement.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  return end == requirement.begin() ? requirement : std::string(requirement.begin(), end);
}

// Lists of named things are compared by name, so that one more in their midst is one difference.
json ByName(const json& value) {
  const auto all_have = [&](const char* name) {
    return !value.empty() && std::all_of(value.begin(), value.end(), [&](const json& each) {
      return each.is_object() && each.contains(name) && each[name].is_string();
    });
  };
  json named = json::object();
  if (all_have("text")) {
    for (const json& each : value) {
      const std::string text = each["text"];
      named[PackageOf(text)] = text;
    }
  } else if (all_have("name")) {
    for (const json& each : value) named[each["name"].get<std::string>()] = each;
  }
  return named.empty() ? value : named;
}

std::string ValueText(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Adds each value of the job by its key, with dots; what is empty is not there.
void AddKeysOf(const std::string& key, const json& value, NamedTexts& texts) {
  const json named = value.is_array() ? ByName(value) : value;
  if (!named.is_object()) {
    const bool is_empty = named.is_null() || (named.is_array() && named.empty()) || named == "";
    if (!is_empty) texts[key] = ValueText(named);
    return;
  }
  for (const auto& [name, each] : named.items()) {
    if (!IsOfNoKey(key, name, each))
      AddKeysOf(key.empty() ? name : absl::StrCat(key, ".", name), each, texts);
  }
}

// Returns a field as the job file calls it.
std::string KeyOf(const std::string& field) {
  static const NamedTexts kKeys = {{"instance_count", "resources.instance_count"},
                                   {"timeout_seconds", "limits.timeout"},
                                   {"priority", "queue_settings.priority"},
                                   {"max_retries", "retry_settings.max_retries"},
                                   {"part.cpus", "resources.properties.tutti.cpus"},
                                   {"part.memory_bytes", "resources.properties.tutti.memory"},
                                   {"part.gpus", "resources.properties.tutti.gpus"}};
  const auto found = kKeys.find(field);
  return found == kKeys.end() ? field : found->second;
}

std::string Change(absl::string_view what, const std::string& before, const std::string& now) {
  return absl::StrCat(what, " ", before.empty() ? "none" : before, " -> ",
                      now.empty() ? "none" : now);
}

// Returns "NAME BEFORE -> NOW" for each name whose texts are not the same.
std::vector<std::string> Changes(const NamedTexts& before, const NamedTexts& now) {
  std::set<std::string> names;
  for (const NamedTexts* texts : {&before, &now}) {
    for (const auto& [name, text] : *texts) names.insert(name);
  }
  const auto text_of = [](const NamedTexts& texts, const std::string& name) {
    const auto found = texts.find(name);
    return found == texts.end() ? "" : found->second;
  };
  std::vector<std::string> changes;
  for (const std::string& name : names) {
    const std::string was = text_of(before, name), is = text_of(now, name);
    if (was != is) changes.push_back(Change(name, was, is));
  }
  return changes;
}

struct Arguments {
  std::vector<std::string> others;  // the program, and words that belong to no option
  NamedTexts options;               // "--lr": "0.1"; of a flag "given"
};

bool IsOption(absl::string_view word) {
  double number = 0;
  return word.size() > 1 && word[0] == '-' && !absl::SimpleAtod(word, &number);
}

Arguments ArgumentsOf(const std::string& command) {
  Arguments arguments;
  std::string option;
  for (const spec::ShellWords& words : spec::CommandsOf(command, "")) {
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (IsOption(word)) {
        option = word.substr(0, equals);
        arguments.options[option] = equals == std::string::npos ? "given" : word.substr(equals + 1);
        if (equals != std::string::npos) option.clear();
      } else if (!option.empty()) {
        arguments.options[std::exchange(option, "")] = word;
      } else {
        arguments.others.push_back(word);
      }
    }
  }
  return arguments;
}

// Returns the job's values by its keys; the name is its own.
NamedTexts KeysOf(absl::string_view job) {
  NamedTexts keys;
  AddKeysOf("", json::parse(job, nullptr, /*allow_exceptions=*/false), keys);
  keys.erase("name");
  NamedTexts named;
  for (const auto& [field, text] : keys) named[KeyOf(field)] = text;
  return named;
}

// Compares what the code of the two jobs was. The order of a job's codes is that of their places.
class CodeComparison {
 public:
  CodeComparison(ServiceClient& service, std::string before, std::string now, uint64_t most_bytes)
      : service_(service), before_(std::move(before)), now_(std::move(now)), most_(most_bytes) {}

  // Adds what differs, or why that is not known.
  absl::Status Compare(const NamedTexts& before, const NamedTexts& now, JobDifference& difference) {
    if (before == now) return absl::OkStatus();
    const bool differ = HashesOf(before) != HashesOf(now);
    if (!differ) return absl::OkStatus();
    absl::Status there = Bring(before_, before);
    if (there.ok()) there = Bring(now_, now);
    if (absl::IsNotFound(there) || absl::IsResourceExhausted(there)) {
      difference.notes.push_back(std::string(there.message()));
      return absl::OkStatus();
    }
    TUTTI_RETURN_IF_ERROR(there);
    auto compared =
        CompareCode(folder_.path(), before_, now_, base::Deadline::After(kPatienceWithDiff));
    if (absl::IsFailedPrecondition(compared.status())) {
      difference.notes.push_back(absl::StrCat("the code differs; ", compared.status().message()));
      return absl::OkStatus();
    }
    TUTTI_RETURN_IF_ERROR(compared.status());
    difference.files = std::move(compared->files);
    difference.patch = std::move(compared->patch);
    return absl::OkStatus();
  }

 private:
  static std::vector<std::string> HashesOf(const NamedTexts& snapshots) {
    std::vector<std::string> hashes;
    for (const auto& [code, hash] : snapshots) hashes.push_back(hash);
    return hashes;
  }

  // Puts all code of `job` below a folder of its name, of several codes each below its number and
  // name.
  absl::Status Bring(const std::string& job, const NamedTexts& snapshots) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_.path() / job));
    int number = 0;
    for (const auto& [code, hash] : snapshots) {
      std::filesystem::path place = folder_.path() / job;
      const std::string name = std::filesystem::path(code).filename().string();
      if (snapshots.size() > 1) place /= absl::StrCat(++number, "-", name);
      TUTTI_RETURN_IF_ERROR(BringOne(job, hash, place));
    }
    return absl::OkStatus();
  }

  absl::Status BringOne(const std::string& job, const std::string& hash,
                        const std::filesystem::path& place) {
    const std::filesystem::path archive = folder_.path() / ".archive";
    std::ofstream file(archive, std::ios::binary | std::ios::trunc);
    uint64_t bytes = 0;
    const absl::Status brought = service_.Snapshot(hash, [&](absl::string_view chunk) {
      bytes += chunk.size();
      if (bytes > most_) return absl::ResourceExhaustedError("");
      file.write(chunk.data(), static_cast<std::streamsize>(chunk.size()));
      return file.good() ? absl::OkStatus() : absl::InternalError("cannot write the code down");
    });
    file.close();
    const absl::Status status = brought.ok() ? UnpackFiles(archive, place, most_) : brought;
    if (absl::IsNotFound(status)) {
      return absl::NotFoundError(
          absl::StrCat("the code differs, and that of ", job, " is no longer kept"));
    }
    if (absl::IsResourceExhausted(status)) {
      return absl::ResourceExhaustedError("the code differs, and is too large to look at here");
    }
    return status;
  }

  ServiceClient& service_;
  const std::string before_, now_;
  const uint64_t most_;
  const base::TemporaryDirectory folder_{"tutti-diff"};
};

absl::StatusOr<SubmissionView> SubmissionOfJob(ServiceClient& service, const std::string& job,
                                               bool former = false) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Submission(job, former));
  TUTTI_ASSIGN_OR_RETURN(SubmissionView submission, Parse<SubmissionView>(text));
  if (submission.job.text.empty()) {
    return absl::FailedPreconditionError(
        "this service is older than the command, and does not tell what differs");
  }
  return submission;
}

}  // namespace

Installed ParseInstalled(absl::string_view text) {
  Installed installed;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&line, "# Python ")) {
      const std::pair<absl::string_view, absl::string_view> words =
          absl::StrSplit(line, absl::MaxSplits(" (", 1));
      installed.python = std::string(words.first);
      installed.interpreter = std::string(absl::StripSuffix(words.second, ")"));
      continue;
    }
    const std::pair<std::string, std::string> package =
        absl::StrSplit(line, absl::MaxSplits("==", 1));
    installed.packages[package.first] = package.second;
  }
  return installed;
}

absl::StatusOr<Installed> InstalledFor(ServiceClient& service, const std::string& job) {
  std::string text;
  TUTTI_RETURN_IF_ERROR(service.File(job, kInstalledResult, [&](absl::string_view chunk) {
    if (text.size() > kMostInstalled) return absl::ResourceExhaustedError("it is no list");
    absl::StrAppend(&text, chunk);
    return absl::OkStatus();
  }));
  return ParseInstalled(text);
}

std::vector<std::string> KeysThatDiffer(absl::string_view before, absl::string_view now,
                                        std::vector<std::string>& arguments) {
  NamedTexts was = KeysOf(before), is = KeysOf(now);
  const Arguments old_words = ArgumentsOf(was["command"]), new_words = ArgumentsOf(is["command"]);
  if (old_words.others == new_words.others && was["command"] != is["command"]) {
    arguments = Changes(old_words.options, new_words.options);
    if (!arguments.empty()) is["command"] = was["command"];
  }
  return Changes(was, is);
}

absl::StatusOr<JobDifference> CompareJobs(ServiceClient& service, const std::string& before,
                                          const std::string& now, uint64_t most_bytes) {
  TUTTI_ASSIGN_OR_RETURN(const SubmissionView was, SubmissionOfJob(service, before));
  TUTTI_ASSIGN_OR_RETURN(const SubmissionView is, SubmissionOfJob(service, now));
  JobDifference difference;
  difference.keys = KeysThatDiffer(was.job.text, is.job.text, difference.arguments);
  TUTTI_RETURN_IF_ERROR(CodeComparison(service, before, now, most_bytes)
                            .Compare(was.snapshots, is.snapshots, difference));
  const auto had = InstalledFor(service, before), has = InstalledFor(service, now);
  if (!had.ok() || !has.ok()) return difference;
  difference.packages = Changes(had->packages, has->packages);
  if (had->python != has->python) {
    difference.packages.insert(difference.packages.begin(),
                               Change("Python", had->python, has->python));
  }
  return difference;
}

absl::StatusOr<std::string> FormerJob(ServiceClient& service, const std::string& job) {
  TUTTI_ASSIGN_OR_RETURN(SubmissionView submission, SubmissionOfJob(service, job, /*former=*/true));
  if (!submission.former.empty()) return std::move(submission.former);
  return absl::NotFoundError(absl::StrCat("no earlier job is known of the script or file of ", job,
                                          ": name another, as in tutti job diff ", job, " OTHER"));
}

std::string DifferenceLine(const JobDifference& difference, const std::string& job, size_t most) {
  std::vector<std::string> all;
  for (const auto* part : {&difference.arguments, &difference.keys, &difference.files,
                           &difference.packages, &difference.notes}) {
    for (const std::string& one : *part) {
      all.push_back(most == 0 ? one : base::BoundedUtf8(Printable(one), kLongestEntry));
    }
  }
  if (all.empty()) return "nothing";
  const size_t more = most == 0 || all.size() <= most ? 0 : all.size() - most;
  all.resize(all.size() - more);
  return absl::StrCat(
      absl::StrJoin(all, "; "),
      more == 0 ? "" : absl::StrCat("; … and ", more, " more: tutti job diff ", job));
}

}  // namespace tutti::client
