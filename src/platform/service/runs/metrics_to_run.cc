#include "platform/service/runs/metrics_to_run.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::service {

absl::Status MetricsToRun::ReadOn(bool to_the_end) {
  const auto read = lines_.ReadOn(to_the_end, [this](absl::string_view lines, uint64_t) {
    for (const absl::string_view line : absl::StrSplit(lines, '\n')) Take(line);
  });
  Log();
  status_.Update(read.status());
  return status_;
}

void MetricsToRun::Take(absl::string_view line) {
  if (absl::StrContains(line, "\"recipe\"")) TakeStart(line);
  if (!began_ || !line_.Read(line)) return;
  for (const ReportedLine::Value& value : line_.values()) {
    const auto time = static_cast<int64_t>(1000 * line_.time().value_or(0));
    batch_.metrics.push_back({.key = absl::StrCat(value.prefix, value.name),
                              .point = {line_.step().value_or(0), time, value.value}});
    if (batch_.metrics.size() == tracking::kMostMetricsOfBatch) Log();
  }
}

void MetricsToRun::TakeStart(absl::string_view line) {
  const auto start = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!start.is_object() || start.value("event", nlohmann::json()) != "start") return;
  const auto recipe = start.find("recipe");
  if (recipe == start.end() || !recipe->is_object()) return;
  began_ = true;
  for (const auto& [name, value] : recipe->items()) {
    if (!value.is_string() || batch_.params.size() == tracking::kMostParamsOfBatch) continue;
    batch_.params.push_back({name, tracking::CutParam(value.get<std::string>())});
  }
  Log();
}

// Params of a training that is begun again with others, and names that MLflow does not allow, are
// refused; what comes behind them is not.
void MetricsToRun::Log() {
  tracking::LogRequest request{.run = run_, .batch = std::exchange(batch_, {}), .status = {}};
  if (request.batch.metrics.empty() && request.batch.params.empty()) return;
  if (!tracking::CheckBatch(request.batch).ok()) return;
  store_->LogTogether({&request});
  if (!absl::IsInvalidArgument(request.status)) status_.Update(request.status);
}

}  // namespace tutti::service
