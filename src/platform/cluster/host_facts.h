// HostFacts says what a bare machine is and which parts of a Slurm cluster it has already: one
// script, which changes nothing, asks for them as root on the host. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::cluster {

struct Gpu {
  int minor = 0;  // /dev/nvidiaMINOR
  std::string model;
};

struct HostFacts {
  std::string host;     // as the user named it
  std::string name;     // its own short name: Slurm's NodeName
  std::string address;  // where ssh reached it, numeric
  std::string system;   // /etc/os-release: "debian 12"
  bool has_apt = false;
  bool systemd = false;  // runs
  int sockets = 1, cores_per_socket = 1, threads_per_core = 1;
  bool fewer_cpus = false;  // this host may use fewer than the machine has
  int64_t memory_mib = 0;
  std::vector<Gpu> gpus;                     // as nvidia-smi names them
  bool gpus_hang = false;                    // it did not answer in time
  std::string cgroup;                        // "v1" or "v2" where Slurm can use it, else empty
  std::set<std::string> commands;            // of Slurm, munge and NFS, those that are there
  std::map<std::string, std::string> files;  // those of kProbedFiles that are there, with SHA-256
  std::set<std::string> marked;              // of `files`, those that tutti made
  bool foreign_configuration = false;        // a slurm.conf that tutti did not make
  bool configured = false;                   // a configuration of Slurm, whoever made it
  std::set<std::string> running;             // munged, slurmctld, slurmd, slurmdbd
  bool nfs_client = false;                   // the kernel has one of NFSv4
  std::set<std::string> mount_lines;         // of /etc/fstab, those that tutti made
  std::map<std::string, std::string>
      mounted;  // by path, what is mounted there; not of the kernel's own

  int cpus() const { return sockets * cores_per_socket * threads_per_core; }
};

// Runs in any POSIX shell, with ssh's SSH_CONNECTION as $1; prints one KEY=VALUE a line.
std::string ProbeScript();

// Reads what a host said; InvalidArgument names the host and the line that is not what the script
// prints.
absl::StatusOr<HostFacts> ReadFacts(const std::string& host, absl::string_view text);

}  // namespace tutti::cluster
