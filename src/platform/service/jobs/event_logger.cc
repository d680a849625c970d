#include "platform/service/jobs/event_logger.h"

#include <spdlog/spdlog.h>

namespace tutti::service {

void EventLogger::OnEvent(const store::Job& job, const store::Event& event, const EventDetail&) {
  spdlog::info("job {}: {}: {}", job.id, std::string(Name(event.state)), event.reason);
}

}  // namespace tutti::service
