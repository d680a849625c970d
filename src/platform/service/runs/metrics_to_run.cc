#include "platform/service/runs/metrics_to_run.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::service {

absl::Status MetricsToRun::ReadOn(bool to_the_end) {
  const auto read = lines_.ReadOn(to_the_end, [this](absl::string_view lines, uint64_t) {
    for (const absl::string_view line : absl::StrSplit(lines, '\n')) Take(line);
  });
  LogMetrics();
  status_.Update(read.status());
  return status_;
}

void MetricsToRun::Take(absl::string_view line) {
  if (absl::StrContains(line, "\"recipe\"")) TakeStart(line);
  if (!began_ || !line_.Read(line)) return;
  for (const ReportedLine::Value& value : line_.values()) {
    std::string key = absl::StrCat(value.prefix, value.name);
    if (!tracking::CheckKey("metric", key).ok()) continue;
    const auto time = static_cast<int64_t>(1000 * line_.time().value_or(0));
    batch_.metrics.push_back(
        {.key = std::move(key), .point = {line_.step().value_or(0), time, value.value}});
    if (batch_.metrics.size() == tracking::kMostMetricsOfBatch) LogMetrics();
  }
}

void MetricsToRun::TakeStart(absl::string_view line) {
  const auto start = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!start.is_object() || start.value("event", nlohmann::json()) != "start") return;
  const auto recipe = start.find("recipe");
  if (recipe == start.end() || !recipe->is_object()) return;
  began_ = true;
  std::vector<tracking::LogRequest> requests;  // one each, so that none is refused with another
  for (const auto& [name, value] : recipe->items()) {
    if (!value.is_string() || requests.size() == tracking::kMostParamsOfBatch) continue;
    if (!tracking::CheckKey("param", name).ok()) continue;
    tracking::Batch param;
    param.params = {{name, tracking::CutParam(value.get<std::string>())}};
    requests.push_back({run_, std::move(param), {}});
  }
  Log(std::move(requests));
}

void MetricsToRun::LogMetrics() {
  if (batch_.metrics.empty()) return;
  Log({{run_, std::exchange(batch_, {}), {}}});
}

// A param that a training begun again has with another value is refused: the run keeps the first.
// That is no error of the run's.
void MetricsToRun::Log(std::vector<tracking::LogRequest> requests) {
  std::vector<tracking::LogRequest*> together;
  for (tracking::LogRequest& request : requests) together.push_back(&request);
  store_->LogTogether(together);
  for (const tracking::LogRequest& request : requests) {
    if (!absl::IsInvalidArgument(request.status)) status_.Update(request.status);
  }
}

}  // namespace tutti::service
