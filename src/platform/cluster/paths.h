// Names the files that a cluster has on its hosts.
#pragma once

#include <array>

#include "absl/strings/string_view.h"

namespace tutti::cluster {

// The first line of each file that tutti makes.
inline constexpr absl::string_view kMark = "# Made by tutti cluster; changes are overwritten.";

inline constexpr absl::string_view kMungeKey = "/etc/munge/munge.key";
inline constexpr absl::string_view kSlurmConf = "/etc/slurm/slurm.conf";
inline constexpr absl::string_view kCgroupConf = "/etc/slurm/cgroup.conf";
inline constexpr absl::string_view kGresConf = "/etc/slurm/gres.conf";
inline constexpr absl::string_view kSlurmdbdConf = "/etc/slurm/slurmdbd.conf";
inline constexpr absl::string_view kResumeProgram = "/etc/slurm/tutti-resume";
inline constexpr absl::string_view kSuspendProgram = "/etc/slurm/tutti-suspend";
inline constexpr absl::string_view kKeepProgram = "/etc/slurm/tutti-keep";
// The options that slurmd is started with, which its unit reads.
inline constexpr absl::string_view kSlurmdOptions = "/etc/default/slurmd";
// Lets slurmd's unit run on a host without a slurm.conf of its own, and until it has one.
inline constexpr absl::string_view kSlurmdUnit = "/etc/systemd/system/slurmd.service.d/tutti.conf";
// slurmd keeps these from its controller.
inline constexpr absl::string_view kFetchedSlurmConf = "/var/spool/slurmd/conf-cache/slurm.conf";
inline constexpr absl::string_view kFetchedCgroupConf = "/var/spool/slurmd/conf-cache/cgroup.conf";
inline constexpr absl::string_view kFetchedGresConf = "/var/spool/slurmd/conf-cache/gres.conf";
inline constexpr absl::string_view kPowerLogs = "/var/log/slurm/tutti-nodes";

inline constexpr std::array<absl::string_view, 13> kProbedFiles = {
    kMungeKey,         kSlurmConf,         kCgroupConf,     kGresConf,      kSlurmdbdConf,
    kResumeProgram,    kSuspendProgram,    kKeepProgram,    kSlurmdOptions, kSlurmdUnit,
    kFetchedSlurmConf, kFetchedCgroupConf, kFetchedGresConf};

}  // namespace tutti::cluster
