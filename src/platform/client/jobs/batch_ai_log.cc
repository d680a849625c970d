#include "platform/client/jobs/batch_ai_log.h"

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace tutti::client {

std::optional<BatchAiLog> LogOfBatchAi(absl::string_view name) {
  BatchAiLog log;
  if (!absl::ConsumeSuffix(&name, ".txt")) return std::nullopt;
  log.is_stderr = absl::ConsumePrefix(&name, "stderr");
  if (!log.is_stderr && !absl::ConsumePrefix(&name, "stdout")) return std::nullopt;
  if (name.empty()) return log;
  if (!absl::ConsumePrefix(&name, "-wk-") && !absl::ConsumePrefix(&name, "-")) return std::nullopt;
  if (!absl::SimpleAtoi(name, &log.rank) || log.rank < 0 || name[0] == '+') return std::nullopt;
  return log;
}

}  // namespace tutti::client
