#include "platform/service/admission/part_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/binary_size.h"
#include "platform/service/attempt/node_room.h"

namespace tutti::service {
namespace {

using scheduler::Resources;

std::string Size(int64_t bytes) { return base::BinarySize(static_cast<uint64_t>(bytes)); }

// The first that no node has, with the most that one has of it; "" if each is there on some node.
std::string TooLarge(const Resources& share, const Resources& most) {
  const auto says = [](const char* key, const std::string& asked, const std::string& there) {
    return absl::StrCat(key, " asks for ", asked, ", and the largest node has ", there,
                        ": ask for no more, or leave resources.properties.tutti out to have whole ",
                        "nodes");
  };
  if (share.cores > most.cores) {
    return says("cpus", absl::StrCat(share.cores), absl::StrCat(most.cores));
  }
  if (share.memory_bytes > most.memory_bytes) {
    return says("memory", Size(share.memory_bytes), Size(most.memory_bytes));
  }
  if (share.gpus > most.gpus) {
    return says("gpus", absl::StrCat(share.gpus),
                most.gpus == 0 ? "none" : absl::StrCat(most.gpus));
  }
  return "";
}

}  // namespace

absl::Status CheckNodeShare(const spec::JobSpec& job, const std::vector<engine::Node>& nodes) {
  const auto share = NodeShareOf(job);
  if (!share || job.compute != "local") return absl::OkStatus();
  Resources most;
  int able = 0;
  for (const engine::Node& node : nodes) {
    const Resources room = RoomOf(node);
    most = {std::max(most.cores, room.cores), std::max(most.memory_bytes, room.memory_bytes),
            std::max(most.gpus, room.gpus)};
    able += scheduler::Fits(scheduler::NeedOn({node.name, room}, share), room) ? 1 : 0;
  }
  if (able >= job.instance_count) return absl::OkStatus();
  const spec::SourceLocation& at = job.share_location;
  const std::string why = able > 0 ? "" : TooLarge(*share, most);
  return absl::InvalidArgumentError(absl::StrCat(
      at.line > 0 ? absl::StrCat(at.file, ":", at.line) : job.file_name,
      ": resources.properties.tutti",
      why.empty()
          ? absl::StrCat(": such a share of ", job.instance_count, " nodes is asked for, and ",
                         able, able == 1 ? " node has" : " nodes have",
                         " it: lower resources.instance_count or ask for less")
          : absl::StrCat(".", why)));
}

}  // namespace tutti::service
