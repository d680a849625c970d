// Whatever Slurm's commands print, it is read or refused.
#include <cstdlib>
#include <string>

#include "platform/engine/slurm/queue_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto jobs = tutti::engine::ReadQueue(text, "tutti:");
  if (jobs.ok()) {
    for (const auto& job : *jobs) {
      if (job.id <= 0) std::abort();
    }
  }
  const auto hosts = tutti::engine::ExpandHosts(text);
  if (hosts.ok() && hosts->size() > 65'536) std::abort();
  for (const auto& node : tutti::engine::ReadNodes(text)) {
    if (node.name.empty() || node.memory_bytes < 0) std::abort();
  }
  for (const auto& node : tutti::engine::ReadRoom(text, "")) {
    if (node.name.empty() || node.idle_cpus < 0) std::abort();
  }
  for (const auto& record : tutti::engine::ReadRecords(text)) {
    if (record.name.empty() || record.job.state.empty()) std::abort();
  }
  return 0;
}
