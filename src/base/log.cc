#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace tutti::base {

void StartLogging(absl::string_view level) {
  auto logger = std::make_shared<spdlog::logger>(
      "tutti", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%L%$ %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(std::string(level)));
  spdlog::set_default_logger(std::move(logger));
}

void Warn(absl::string_view text) { spdlog::warn("{}", std::string(text)); }

}  // namespace tutti::base
