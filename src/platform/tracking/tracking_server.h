// TrackingServer answers the calls of MLflow's clients (versions 1 to 3): its REST interface for
// experiments, runs and metrics, and the artifacts of runs. What MLflow has beyond that (the model
// registry, traces and others) is refused by name. Thread-safe.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "http/message.h"
#include "http/server/server.h"
#include "platform/tracking/artifact_store.h"
#include "platform/tracking/store/log_queue.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::tracking {

class TrackingServer {
 public:
  // Both outlive it.
  TrackingServer(TrackingStore* store, ArtifactStore* artifacts)
      : store_(store), artifacts_(artifacts), logs_(store) {}

  // Answers /api/2.0/mlflow/CALL, waiting for nothing but the database. What is logged is answered
  // later, once it is on the disk. `job_run`, here and below: the own run of the job that asks,
  // which may not change everything (calls/job_scope.h); empty: a user asks.
  http::Response Call(absl::string_view call, const http::Request& request,
                      http::Connection& connection, const std::string& job_run = "");

  // These touch folders. Lists a run's artifacts (artifacts/list):
  http::Response ListArtifactsOfRun(const http::Request& request);
  // a logged model's (logged-models/MODEL/artifacts/directories),
  http::Response ListArtifactsOfModel(const std::string& model, const http::Request& request);
  // and, below /api/2.0/mlflow-artifacts/artifacts, lists a folder (?path=), sends, takes and
  // removes a file.
  http::Response ListArtifacts(const http::Request& request);
  http::Response GetArtifact(absl::string_view path);
  http::Response PutArtifact(absl::string_view path, http::Connection& connection,
                             const std::string& job_run = "");
  http::Response DeleteArtifact(absl::string_view path, const std::string& job_run = "");

 private:
  TrackingStore* const store_;
  ArtifactStore* const artifacts_;
  LogQueue logs_;
};

}  // namespace tutti::tracking
