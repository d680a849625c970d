#include "platform/client/results/results_so_far.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "platform/client/text/columns.h"

namespace tutti::client {

std::string AskForResultsSoFar(ServiceClient& service, const JobView& job, const std::string& name,
                               absl::Duration wait) {
  if (job.state != "Running" || job.type != "command") return "";
  std::string text = absl::StrCat("job ", job.id, " still runs");
  const auto asked = service.Results(job.id, name, wait);
  if (absl::IsFailedPrecondition(asked.status())) return "";  // it has ended since
  if (!asked.ok()) {
    return absl::StrCat(
        text, ", and its results come when it ends: ", Printable(asked.status().message()));
  }
  absl::StrAppend(&text, ": this is what it had at ",
                  absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()));
  const auto answer = nlohmann::json::parse(*asked, nullptr, /*allow_exceptions=*/false);
  const auto missing = answer.is_object() ? answer.find("missing") : answer.end();
  if (!answer.is_object() || missing == answer.end() || !missing->is_array()) {
    return absl::StrCat(text, "; which nodes did not answer is not known");
  }
  for (const nlohmann::json& left : *missing) {
    if (!left.is_object()) continue;
    absl::StrAppend(&text, "; node ", Printable(left.value("node", "")), ": ",
                    Printable(left.value("why", "")));
  }
  return text;
}

}  // namespace tutti::client
