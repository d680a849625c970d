// Answers who asks for the code of a job, file by file: a browser cannot unpack its archive.
#pragma once

#include "platform/api/routing/router.h"
#include "platform/service/service.h"

namespace tutti::api {

// GET /v1/jobs/{job}/code?folder=FOLDER: of a job that has several, one of its submission's
// `snapshots`.
http::Response AnswerCode(service::Service* service, const Call& call);

}  // namespace tutti::api
