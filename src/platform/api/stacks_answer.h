// Answers who asks for the stacks of a job's ranks: asks its launchers, and waits for them without
// a thread.
#pragma once

#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

// POST /v1/jobs/{job}/stacks?rank=R&native=BOOL&wait=SECONDS.
http::Response AnswerStacks(service::Service* service, const Call& call);

}  // namespace tutti::api
