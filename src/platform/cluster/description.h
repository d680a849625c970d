// Description is the cluster that the user asked for, kept in a file between commands. Plain
// values.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "platform/cluster/host_facts.h"
#include "platform/cluster/mounts/nfs_mount.h"

namespace tutti::cluster {

// Accounting by slurmdbd, which keeps it in a MariaDB that is there already.
struct AccountingDatabase {
  std::string host, database, user, password;
  int port = 3306;
};

// Nodes that are there while they are needed: Slurm's power saving, and commands of the site that
// switch a node on and off.
struct Autoscale {
  std::vector<std::string> nodes;  // as many as there may be
  int min = 0;                     // so many stay once they are there
  int idle_seconds = 300;          // a node without work is switched off after that
  int boot_seconds = 600;          // a node that does not come in that time is unusable
  int halt_seconds = 120;          // a node is gone that long after it was switched off
  std::string resume, suspend;     // commands, run by sh with NODE set
  // Each has this hardware.
  int sockets = 1, cores_per_socket = 1, threads_per_core = 1;
  int64_t memory_mib = 0;
  std::vector<Gpu> gpus;
  std::string cgroup;  // "v1" or "v2" where Slurm can use it, else empty
};

struct Description {
  std::string name = "tutti";      // Slurm's ClusterName
  std::string controller;          // host
  std::vector<std::string> nodes;  // hosts; the controller may be one
  std::string user;                // who ssh logs in as; empty: as ssh's own configuration says
  std::string ssh_config;          // a file for ssh -F; empty: ssh's own
  std::string munge_key;           // what all hosts prove themselves with
  std::optional<AccountingDatabase> accounting;
  std::optional<Autoscale> autoscale;
  std::vector<NfsMount> mounts;  // on every node

  // Returns the controller and the nodes, each once.
  std::vector<std::string> Hosts() const;
};

// Reads HOME/clusters/NAME.json, readable by its owner alone. NotFound if there is none.
absl::StatusOr<Description> ReadDescription(const std::filesystem::path& home,
                                            const std::string& name);
absl::Status WriteDescription(const std::filesystem::path& home, const Description& description);
// Locks it until the descriptor is closed, for a command that changes the cluster. Cancelled if
// another has it and `cancelled` is set. It stays when a description is removed: who waits for it
// has it open.
absl::StatusOr<base::UniqueFd> LockDescription(const std::filesystem::path& home,
                                               const std::string& name,
                                               const std::atomic<bool>& cancelled);
absl::Status RemoveDescription(const std::filesystem::path& home, const std::string& name);

// Reads "mysql://USER:PASSWORD@HOST[:PORT]/DATABASE".
absl::StatusOr<AccountingDatabase> ReadAccountingDatabase(const std::string& address);

// Checks a name; InvalidArgument if it is none for a cluster or host.
absl::Status CheckClusterName(const std::string& name);
absl::Status CheckHostName(const std::string& host);

}  // namespace tutti::cluster
