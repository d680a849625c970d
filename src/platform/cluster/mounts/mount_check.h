// Looks whether a node has its cluster's mounts, and whether they answer. Plain values and pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "platform/cluster/mounts/nfs_mount.h"

namespace tutti::cluster {

// MountAnswer is the state of one of the cluster's mounts on a node.
struct MountAnswer {
  enum class State { kAnswers, kSilent, kForeign, kGone, kNoClient };
  State state = State::kAnswers;
  std::string path;
  std::string source;  // what should be there; of kForeign what is
};

// Returns the part of a node's script that looks at its mounts: each is to answer within 10 s.
// `table`: where the kernel lists what is mounted; tests have another.
std::string CheckMountsText(const std::vector<NfsMount>& mounts,
                            absl::string_view table = "/proc/self/mounts");

// Reads a line of what that prints, without "mount="; what is none is left out.
void ReadMountAnswer(const std::string& text, std::vector<MountAnswer>& mounts);

// Return what was found, and what to do about it; "" for a mount that answers.
std::string DetailOf(const MountAnswer& mount);
std::string RemedyOf(const MountAnswer& mount);

}  // namespace tutti::cluster
