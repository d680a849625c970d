// Answers who asks the launchers of a job that runs: asks them, and waits for them without a
// thread.
#pragma once

#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

// POST /v1/jobs/{job}/stacks?rank=R&native=BOOL&wait=SECONDS.
http::Response AnswerStacks(service::Service* service, const Call& call);
// POST /v1/jobs/{job}/results?name=TEXT&wait=SECONDS: once it is answered, the job's files are what
// its nodes have sent of what they have now.
http::Response AnswerResults(service::Service* service, const Call& call);

}  // namespace tutti::api
