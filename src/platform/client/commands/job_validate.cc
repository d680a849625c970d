#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "platform/client/commands/commands.h"
#include "platform/client/submit/submit.h"
#include "spec/json/json_fields.h"

namespace tutti::client {
namespace {

using nlohmann::json;

// "job.yml:9: what" as Azure ML's own validation shows it: what, and where.
json FindingOf(absl::string_view line, const std::string& file) {
  const size_t end = line.find(": ");
  const absl::string_view place = line.substr(0, end);
  const size_t colon = place.rfind(':');
  int number = 0;
  const bool has_place = end != absl::string_view::npos && colon != absl::string_view::npos &&
                         absl::SimpleAtoi(place.substr(colon + 1), &number);
  if (!has_place) return {{"message", line}, {"location", file}};
  return {{"message", line.substr(end + 2)}, {"location", place}};
}

json Findings(const std::vector<std::string>& lines, const std::string& file) {
  json findings = json::array();
  for (const std::string& line : lines) findings.push_back(FindingOf(line, file));
  return findings;
}

// Returns whether an error says what is wrong with the job, and not that the service could not be
// asked.
bool IsVerdict(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status);
}

std::string InWords(const spec::JobSpec& job) {
  if (job.kind == spec::JobKind::kPipeline) {
    return absl::StrCat("a pipeline of ", job.steps.size(),
                        job.steps.size() == 1 ? " step" : " steps");
  }
  const std::string size =
      absl::StrCat(job.instance_count, job.instance_count == 1 ? " node, " : " nodes, ",
                   job.WorldSize(), job.WorldSize() == 1 ? " process" : " processes");
  return absl::StrCat(job.kind == spec::JobKind::kSweep ? "a sweep; each trial: " : "a command; ",
                      size);
}

}  // namespace

absl::StatusOr<ExitCode> JobValidate(Context& context, const JobValidateOptions& options) {
  const auto checked = CheckJob(options.offline ? nullptr : &context.connect, context.home,
                                {options.file, options.settings, options.keys, options.script, {}});
  if (!checked.ok() && !IsVerdict(checked.status())) return checked.status();
  if (options.format != Format::kTable) {
    json report = {{"result", checked.ok() ? "Succeeded" : "Failed"},
                   {"errors", json::array()},
                   {"warnings", json::array()}};
    if (checked.ok()) report["warnings"] = Findings(checked->warnings, options.file);
    const std::vector<std::string> faults =
        absl::StrSplit(checked.status().message(), '\n', absl::SkipEmpty());
    report["errors"] = Findings(faults, options.file);
    const absl::Status written = WriteStructured(context.out, spec::Dump(report), options.format);
    if (!written.ok()) return written;
    return ExitCodeOf(checked.status());
  }
  if (!checked.ok()) return checked.status();
  for (const std::string& remark : checked->remarks) context.err << remark << std::endl;
  for (const std::string& warning : checked->warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  context.out << options.file << " is valid: " << InWords(checked->job) << "\n";
  if (options.offline) {
    context.err << "not asked: the service, which knows its nodes, the names that are taken and "
                   "what it can fetch\n";
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
