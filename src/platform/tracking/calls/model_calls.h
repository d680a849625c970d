// Declares the calls of MLflow 3 for logged models: /api/2.0/mlflow/logged-models/….
// Internal to platform/tracking.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/message.h"
#include "platform/tracking/calls/request_fields.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::tracking {

// ModelCall is a call for logged models, whose path says which.
struct ModelCall {
  absl::string_view method;
  // The parts of its path: "{model}" is any, "{tag...}" the whole rest.
  absl::string_view path;
  absl::StatusOr<http::Response> (*answer)(TrackingStore& store,
                                           const std::vector<std::string>& parts,
                                           RequestFields& fields);
};

// Finds the call of a path, "logged-models/m-1/tags"; null if there is none.
const ModelCall* FindModelCall(absl::string_view method, absl::string_view path);
// `call` answers it.
absl::StatusOr<http::Response> AnswerModelCall(const ModelCall& call, TrackingStore& store,
                                               absl::string_view path, RequestFields& fields);
// Reads the models of a run's inputs or outputs.
std::vector<ModelOfRun> ModelsIn(RequestFields& fields, const char* name);

}  // namespace tutti::tracking
