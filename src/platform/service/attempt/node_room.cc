#include "platform/service/attempt/node_room.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

// The first so many of `all` that are not used; fewer if there are no more.
template <class T>
std::vector<T> FirstFree(const std::vector<T>& all, const std::set<T>& used, int count) {
  std::vector<T> free;
  for (const T& one : all) {
    if (static_cast<int>(free.size()) == count) break;
    if (!used.contains(one)) free.push_back(one);
  }
  return free;
}

}  // namespace

scheduler::Resources RoomOf(const engine::Node& node) {
  return {.cores = std::max(1, static_cast<int>(node.cores.size())),
          .memory_bytes = node.memory_bytes,
          .gpus = static_cast<int>(node.gpus.size())};
}

std::optional<scheduler::Resources> NodeShareOf(const spec::JobSpec& job) {
  if (!job.share) return std::nullopt;
  return scheduler::Resources{
      .cores = job.share->cpus > 0 ? job.share->cpus : job.ProcessesOfANode(),
      .memory_bytes = job.share->memory_bytes,
      .gpus = job.share->gpus};
}

std::optional<scheduler::Resources> NodeShareOf(const PlacedNode& placed) {
  if (placed.cores.empty()) return std::nullopt;
  return scheduler::Resources{.cores = static_cast<int>(placed.cores.size()),
                              .memory_bytes = placed.memory_bytes,
                              .gpus = static_cast<int>(placed.gpus.size())};
}

absl::Status TakeNodeShare(const engine::Node& node, const scheduler::Resources& share,
                           const std::vector<const PlacedNode*>& others, PlacedNode& placed) {
  std::set<int> cores;
  std::set<std::string> gpus;
  for (const PlacedNode* other : others) {
    if (other->name != node.name) continue;
    cores.insert(other->cores.begin(), other->cores.end());
    gpus.insert(other->gpus.begin(), other->gpus.end());
  }
  placed.cores = FirstFree(node.cores, cores, share.cores);
  placed.gpus = FirstFree(node.gpus, gpus, share.gpus);
  placed.memory_bytes = share.memory_bytes;
  if (static_cast<int>(placed.cores.size()) == share.cores &&
      static_cast<int>(placed.gpus.size()) == share.gpus) {
    return absl::OkStatus();
  }
  return absl::InternalError(
      absl::StrCat("node ", node.name, " has fewer processors or GPUs free ", "than was counted"));
}

}  // namespace tutti::service
