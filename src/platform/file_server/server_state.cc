#include "platform/file_server/server_state.h"

#include <utility>

#include "base/status.h"
#include "platform/file_server/state_file.h"

namespace tutti::file_server {
namespace fs = std::filesystem;
namespace {

fs::path StateFile(const fs::path& folder) { return folder / "state.json"; }

}  // namespace

fs::path ServersFolder(const fs::path& home) { return home / "file-servers"; }
fs::path ServerFolder(const fs::path& home, const std::string& name) {
  return ServersFolder(home) / name;
}

nlohmann::json JsonOf(const ServerState& state) {
  return {{"state", state.state}, {"pid", state.pid},           {"start_time", state.start_time},
          {"since", state.since}, {"restarts", state.restarts}, {"error", state.error}};
}

absl::StatusOr<ServerState> ReadServerState(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const nlohmann::json document, ReadStateFile(StateFile(folder)));
  ServerState state;
  TakeField(document, "state", state.state);
  TakeField(document, "pid", state.pid);
  TakeField(document, "start_time", state.start_time);
  TakeField(document, "since", state.since);
  TakeField(document, "restarts", state.restarts);
  TakeField(document, "error", state.error);
  return state;
}

absl::Status WriteServerState(const fs::path& folder, const ServerState& state) {
  return WriteStateFile(StateFile(folder), JsonOf(state));
}

ServerStatus ReadServerStatus(const fs::path& home, const spec::FileServer& server) {
  const fs::path folder = ServerFolder(home, server.name);
  ServerStatus status{.server = server};
  auto state = ReadServerState(folder);
  if (state.ok()) {
    status.state = *std::move(state);
  } else if (absl::IsNotFound(state.status())) {
    status.state.state = "waits for the service";
  } else {
    status.state.state = "unknown";
    status.state.error = std::string(state.status().message());
  }
  if (auto fill = ReadFillState(folder); fill.ok()) status.fill = *std::move(fill);
  return status;
}

absl::StatusOr<std::vector<ServerStatus>> ReadServerStatuses(const fs::path& home) {
  TUTTI_ASSIGN_OR_RETURN(const spec::FileServers servers, spec::ReadFileServers(home));
  std::vector<ServerStatus> statuses;
  for (const auto& [name, server] : servers) statuses.push_back(ReadServerStatus(home, server));
  return statuses;
}

}  // namespace tutti::file_server
