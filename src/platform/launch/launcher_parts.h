// Defines what the steps of a launcher share.
#pragma once

#include "platform/launch/delivery/delivery.h"
#include "platform/launch/node/event_log.h"
#include "platform/launch/node/signals.h"
#include "platform/launch/node/spool.h"
#include "platform/launch/node/wakeup.h"

namespace tutti::launch {

// LauncherParts is what a launcher has for its processes, and outlives them. `news` wakes the loop
// when the service acknowledged something or no longer knows the allocation.
struct LauncherParts {
  EventLog* events;
  Spool* spool;
  Delivery* delivery;
  Signals* signals;
  Wakeup* news;
};

}  // namespace tutti::launch
