#include "platform/service/jobs/event_log.h"

#include <spdlog/spdlog.h>

namespace tutti::service {

void EventLog::OnEvent(const store::Job& job, const store::Event& event) {
  spdlog::info("job {}: {}: {}", job.id, std::string(Name(event.state)), event.reason);
}

}  // namespace tutti::service
