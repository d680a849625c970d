#include "platform/api/tracking_routes.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::api {
namespace {

using http::Pace;
using tracking::TrackingServer;

// What reads folders leaves threads to others, and so do searches and histories, which take as long
// as there is much to read.
constexpr char kArtifacts[] = "mlflow artifacts";
constexpr char kSearches[] = "mlflow searches";

constexpr std::pair<const char*, const char*> kLongCalls[] = {
    {"POST", "experiments/search"},      {"GET", "experiments/search"},
    {"GET", "experiments/list"},         {"POST", "runs/search"},
    {"POST", "logged-models/search"},    {"GET", "metrics/get-history"},
    {"GET", "metrics/get-history-bulk"}, {"GET", "metrics/get-history-bulk-interval"}};

// MLflow's user interface has a prefix of its own, MLflow 1 a version of its own, and 3 two.
constexpr const char* kPrefixes[] = {"/api/2.0/",      "/api/2.0/preview/",      "/api/3.0/",
                                     "/ajax-api/2.0/", "/ajax-api/2.0/preview/", "/ajax-api/3.0/"};

void AddCalls(TrackingServer* tracking, const std::string& prefix, std::vector<Route>& routes) {
  routes.push_back(
      {"GET", absl::StrCat(prefix, "mlflow/artifacts/list"), Access::kTracking,
       [tracking](const Call& call) { return tracking->ListArtifactsOfRun(call.request); },
       Pace::kSlow, kArtifacts});
  routes.push_back({"GET",
                    absl::StrCat(prefix, "mlflow/logged-models/{model}/artifacts/directories"),
                    Access::kTracking,
                    [tracking](const Call& call) {
                      return tracking->ListArtifactsOfModel(call["model"], call.request);
                    },
                    Pace::kSlow, kArtifacts});
  for (const auto& [method, name] : kLongCalls) {
    routes.push_back({method, absl::StrCat(prefix, "mlflow/", name), Access::kTracking,
                      [tracking, name = name](const Call& call) {
                        return tracking->Call(name, call.request, call.connection, call.job_run);
                      },
                      Pace::kSlow, kSearches});
  }
  for (const char* method : {"GET", "POST", "PATCH", "PUT", "DELETE"}) {
    routes.push_back({method, absl::StrCat(prefix, "mlflow/{call...}"), Access::kTracking,
                      [tracking](const Call& call) {
                        return tracking->Call(call["call"], call.request, call.connection,
                                              call.job_run);
                      }});
  }
}

void AddArtifacts(TrackingServer* tracking, const std::string& prefix, std::vector<Route>& routes) {
  const std::string folder = absl::StrCat(prefix, "mlflow-artifacts/artifacts");
  const std::string file = absl::StrCat(folder, "/{path...}");
  routes.push_back({"GET", folder, Access::kTracking,
                    [tracking](const Call& call) { return tracking->ListArtifacts(call.request); },
                    Pace::kSlow, kArtifacts});
  routes.push_back({"GET", file, Access::kTracking,
                    [tracking](const Call& call) { return tracking->GetArtifact(call["path"]); },
                    Pace::kSlow, kArtifacts});
  // Each run's, and each model's, have threads of their own: many send at once, some of them
  // slowly.
  routes.push_back(
      {"PUT", absl::StrCat(folder, "/{experiment}/models/{model}/{path...}"), Access::kTracking,
       [tracking](const Call& call) {
         return tracking->PutArtifact(
             absl::StrCat(call["experiment"], "/models/", call["model"], "/", call["path"]),
             call.connection, call.job_run);
       },
       Pace::kReceives, "model"});
  routes.push_back({"PUT", absl::StrCat(folder, "/{experiment}/{run}/{path...}"), Access::kTracking,
                    [tracking](const Call& call) {
                      return tracking->PutArtifact(
                          absl::StrCat(call["experiment"], "/", call["run"], "/", call["path"]),
                          call.connection, call.job_run);
                    },
                    Pace::kReceives, "run"});
  routes.push_back({"PUT", file, Access::kTracking,
                    [tracking](const Call& call) {
                      return tracking->PutArtifact(call["path"], call.connection, call.job_run);
                    },
                    Pace::kReceives, kArtifacts});
  routes.push_back({"DELETE", file, Access::kTracking,
                    [tracking](const Call& call) {
                      return tracking->DeleteArtifact(call["path"], call.job_run);
                    },
                    Pace::kSlow, kArtifacts});
  routes.push_back({"POST", absl::StrCat(prefix, "mlflow-artifacts/{call...}"), Access::kTracking,
                    [tracking](const Call& call) {
                      return tracking->Call(call["call"], call.request, call.connection,
                                            call.job_run);
                    }});
}

}  // namespace

std::vector<Route> TrackingRoutes(TrackingServer* tracking) {
  std::vector<Route> routes;
  for (const std::string prefix : kPrefixes) {
    AddCalls(tracking, prefix, routes);
    AddArtifacts(tracking, prefix, routes);
  }
  return routes;
}

}  // namespace tutti::api
