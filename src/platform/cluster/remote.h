// Remote runs shell scripts on other hosts. The fake of the tests answers from memory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/command.h"

namespace tutti::cluster {

class Remote {
 public:
  virtual ~Remote() = default;
  // Returns what `script` printed, run as root by `sh -e`; its $1 is ssh's SSH_CONNECTION. Errors
  // name the host and, where they can, the remedy: Unavailable if it cannot be reached, Aborted if
  // the script failed, with the end of what it wrote to standard error. Thread-safe.
  virtual absl::StatusOr<std::string> Run(const std::string& host, absl::string_view script,
                                          base::Deadline deadline) = 0;
};

// Runs scripts by the system's ssh, which never asks anything; one connection to a host serves all
// its scripts. A script goes through standard input, so that no process list shows what is in it.
class SshRemote final : public Remote {
 public:
  // `user` and `config` may be empty: ssh's own.
  SshRemote(std::string user, std::string config);
  absl::StatusOr<std::string> Run(const std::string& host, absl::string_view script,
                                  base::Deadline deadline) override;

 private:
  const std::string user_, config_;
  const base::TemporaryDirectory sockets_{"tutti-ssh"};
};

// Returns ssh with its arguments, by which someone runs these words on a host, or, without any, a
// shell; with `terminal` on this one's. `user` and `config` as above.
std::vector<std::string> SshSession(const std::string& user, const std::string& config,
                                    const std::string& host, const std::vector<std::string>& words,
                                    bool terminal);

}  // namespace tutti::cluster
