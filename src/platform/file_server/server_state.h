// ServerState is what the service notes of a file server that it runs, for those who ask how the
// server stands (ServerStatus), and for the next service, which takes the server over.
//
//   HOME/file-servers/NAME/   mode 0700
//     state.json              this
//     ganesha.conf, ganesha.log (of the time before the last start: ganesha.log.1), recovery/
//     fill.json               how far a fill has come, and what it has brought (fill_state.h)
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/file_server/fill_state.h"
#include "spec/data/file_server.h"

namespace tutti::file_server {

struct ServerState {
  // "starting", "running"; "failed": it has ended, or could not be started, and is tried again.
  std::string state;
  pid_t pid = 0;            // 0: no process
  uint64_t start_time = 0;  // of the process, as base::ProcessStartTime has it
  int64_t since = 0;        // in this state, seconds since 1970
  int restarts = 0;         // how often it has ended by itself since it was created
  std::string error;        // of "failed": why; of "starting": why it has ended before

  bool operator==(const ServerState&) const = default;
};

std::filesystem::path ServersFolder(const std::filesystem::path& home);
std::filesystem::path ServerFolder(const std::filesystem::path& home, const std::string& name);

nlohmann::json JsonOf(const ServerState& state);
// NotFound if the service has not seen the server yet.
absl::StatusOr<ServerState> ReadServerState(const std::filesystem::path& folder);
absl::Status WriteServerState(const std::filesystem::path& folder, const ServerState& state);

// ServerStatus is all that is told of a file server: its definition, its state, which is "waits for
// the service" where none is noted, and its last fill, if it was ever filled.
struct ServerStatus {
  spec::FileServer server;
  ServerState state;
  std::optional<FillState> fill;
};

// Reads how a file server of that home stands.
ServerStatus ReadServerStatus(const std::filesystem::path& home, const spec::FileServer& server);
// Reads the same of all file servers of the home, by name. InvalidArgument if their list is wrong.
absl::StatusOr<std::vector<ServerStatus>> ReadServerStatuses(const std::filesystem::path& home);

}  // namespace tutti::file_server
