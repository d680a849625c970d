// EventListener is the interface that is told of each event of each job: followers, launchers and
// the log today; a webhook, e-mail or a page that shows jobs are one class more
// (docs/checklists/platform.md).
#pragma once

#include "platform/service/jobs/service_lock.h"
#include "platform/store/store.h"

namespace tutti::service {

struct EventDetail;  // live_job.h

class EventListener {
 public:
  virtual ~EventListener() = default;
  // Called once for each event that this service writes, in the order of a job's events, when the
  // event is in the store and in memory, which is before it survives a loss of power (who tells
  // others of it awaits that, by Store::AwaitEvent). It is called under the service's lock: it must
  // return at once, so what takes time is queued for a thread of the listener's own. It is not
  // called for events that an earlier service wrote, even just before it died: who must miss none
  // reads the store from the last sequence that it has seen (Store::EventsOf). `detail` is what
  // `event.detail` says, so that nobody reads that text under the lock.
  virtual void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) = 0;
  // Tells the same of a node of this machine that is cordoned from now on, or not any more. Nothing
  // is kept of it but the cordons that there are.
  virtual void OnCordon(const store::Cordon& /*cordon*/, bool /*is_on*/)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {}
};

}  // namespace tutti::service
