// ServiceOptions holds the settings with which a service is opened.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/disk_reserve.h"
#include "platform/service/attempt/free_port.h"
#include "platform/service/folders/folder_watch.h"
#include "platform/service/health/node_checker.h"
#include "platform/service/jobs/event_listener.h"

namespace tutti::tracking {
class TrackingStore;
}  // namespace tutti::tracking

namespace tutti::service {

inline constexpr size_t kJobTokenBytes = 32;

struct ServiceOptions {
  std::filesystem::path directory;        // logs, outputs and snapshots lie below it
  std::filesystem::path launcher_file;    // spec::LaunchPlan::service_file of every plan
  std::filesystem::path secret_key_file;  // of the secrets' keys; empty: directory/secrets.key
  std::string launcher_key;               // what LauncherToken makes each allocation's token of
  absl::Duration observe_interval = absl::Milliseconds(200);
  absl::Duration stop_grace = absl::Seconds(10);             // from SIGTERM to SIGKILL
  absl::Duration report_limit = absl::Minutes(2);            // for the first word of a launcher
  absl::Duration silence_limit = absl::Minutes(2);           // of a launcher that was told to stop
  absl::Duration patience_with_folders = absl::Seconds(10);  // of calls that need a job's files
  absl::Duration retention_interval = absl::Hours(1);  // between looks at what is kept too long
  base::DiskReserve* reserve = nullptr;    // of the disk of `directory`; outlives the service
  uint64_t log_limit = uint64_t{1} << 30;  // bytes of a job's output that are kept
  bool measures_usage = true;              // launchers tell what their processes use
  int drain_attempts = 5;                  // to recover a dead launcher's spool; 15 s
  std::string boot_id;                     // of this machine; empty: base::BootId
  // A port that is free on that numeric address, `preferred` if it can be.
  std::function<FreePort(const std::string& address, int preferred)>
      find_port;                                        // empty: FindFreePort
  std::function<std::string(size_t bytes)> random_hex;  // empty: base::RandomHex
  FolderQuestions folder_questions;                     // what tests ask in place of the kernel
  // Where jobs get runs of MLflow's; null: nowhere. Outlives the service.
  tracking::TrackingStore* tracking = nullptr;
  NodeChecker* node_checker = nullptr;    // of this machine's nodes; null: they are not looked at
  std::vector<EventListener*> listeners;  // to every event of every job; these outlive the service
};

}  // namespace tutti::service
