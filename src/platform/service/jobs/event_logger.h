// EventLogger writes each event of each job as a line of the service's log.
#pragma once

#include "platform/service/jobs/event_listener.h"

namespace tutti::service {

class EventLogger final : public EventListener {
 public:
  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
};

}  // namespace tutti::service
