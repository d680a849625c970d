// Checks whether each file server of this machine is served.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/client/doctor/checks.h"
#include "platform/file_server/ganesha.h"
#include "platform/file_server/server_state.h"
#include "spec/data/file_server.h"

namespace tutti::client {

Check CheckFileServers(const DoctorSubject& subject) {
  const char* const name = "file servers";
  const auto servers = spec::ReadFileServers(subject.home);
  if (!servers.ok()) {
    return {name, Check::Outcome::kWarning, std::string(servers.status().message()),
            absl::StrCat("repair ", spec::FileServersFile(subject.home).native())};
  }
  const absl::Status can = file_server::CheckGanesha(subject.variables);
  if (servers->empty()) {
    return {name, Check::Outcome::kOk,
            can.ok() ? "none; NFS-Ganesha is here for them"
                     : absl::StrCat("none; for one ", can.message())};
  }
  std::vector<std::string> away;
  for (const auto& [server, definition] : *servers) {
    const auto state =
        file_server::ReadServerState(file_server::ServerFolder(subject.home, server));
    if (state.ok() && state->state == "running") continue;
    const std::string why = state.ok() ? state->error : "";
    away.push_back(absl::StrCat(server, why.empty() ? " is not served" : ": ", why));
  }
  if (away.empty()) {
    return {name, Check::Outcome::kOk, absl::StrCat(servers->size(), " served")};
  }
  return {name, Check::Outcome::kWarning, absl::StrJoin(away, "; "),
          can.ok() ? "see tutti file-server show NAME, and the service's log"
                   : std::string(can.message())};
}

}  // namespace tutti::client
