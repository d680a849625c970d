// These functions mask the values of secrets in all that a launcher keeps and sends: output before
// it is written to the spool, events before they are written, the processes' metrics files as they
// are sent.
#pragma once

#include <map>
#include <string>

#include "platform/launch/node/event_log.h"
#include "platform/launch/node/spool.h"

namespace tutti::launch {

// The keys are the names of the secrets.
using SecretValues = std::map<std::string, std::string>;

// Hides the values from now on; call it before the first process begins.
void MaskOutput(const SecretValues& values, Spool& spool, EventLog& events);
// Does the same of a launcher that cannot learn the values: of the metrics it sends lines of "*".
void MaskEverything(Spool& spool);

}  // namespace tutti::launch
