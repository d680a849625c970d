// Answers GET /v1/jobs/{job}/stream: a job's state changes and output as JSON lines, for as long as
// the job takes; and GET /v1/jobs/{job}/lines: pages of the same, from the end on upwards.
#pragma once

#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

http::Response FollowJob(service::Service* service, const Call& call);

http::Response ListLines(service::Service* service, const Call& call);

}  // namespace tutti::api
