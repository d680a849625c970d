// Platform is a running service with all its parts: the state folder, the store, the engines, the
// service over them and the HTTP interface.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/engine/engine.h"
#include "platform/service/service.h"

namespace tutti {

struct PlatformOptions {
  std::filesystem::path directory;    // the state folder, absolute; made if it is not there
  std::string address = "127.0.0.1";  // numeric
  int port = 6280;                    // 0: any free one
  bool tls = false;                   // HTTPS alone; see platform/api/tls_files.h
  bool mlflow = false;                // answers MLflow's clients too; see platform/tracking
  std::filesystem::path portal;       // the files of the page that it serves; empty: it has none
  int portal_port = 6281;             // of the page on loopback; 0: any free one
  // Called once the state folder is held, so that two services never share an engine.
  std::function<absl::StatusOr<std::unique_ptr<engine::Engine>>()> make_engine;
  // The engines of the other computes, by name; empty: there are none. The file is the service's
  // address for launchers.
  using Clusters = std::map<std::string, std::unique_ptr<engine::Engine>>;
  std::function<absl::StatusOr<Clusters>(const std::filesystem::path& launcher_file)> make_clusters;
  // Starts what runs beside the service as long as that does; empty: nothing.
  std::function<std::shared_ptr<void>()> start_beside;
  service::ServiceOptions service;  // its folders are set by Start
};

// A service that answers requests. Thread-safe.
class Platform {
 public:
  // Starts the service. FailedPrecondition: another service holds the folder. AlreadyExists: the
  // port is taken. Jobs of an earlier service go on.
  static absl::StatusOr<std::unique_ptr<Platform>> Start(const PlatformOptions& options);
  // Requests in work get a second; jobs go on without the service.
  virtual ~Platform() = default;
  virtual const std::string& url() const = 0;
  // Where this machine's browsers find the portal, or why they find it nowhere.
  virtual absl::StatusOr<std::string> portal_url() const = 0;
};

}  // namespace tutti
