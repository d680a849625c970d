// Whatever ranks say, PMI's server answers none that it has not let in, each line at most once, in
// one line, and nobody leaves a barrier alone.
#include <cstdlib>
#include <set>

#include "absl/strings/str_split.h"
#include "platform/launch/mpi/pmi_protocol.h"

// Each line begins with the digit of the connection that it comes by; "x" ends that connection.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::launch::PmiProtocol world(2, "kvs", /*first_id=*/0);
  std::set<int> admitted;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty()) continue;
    const int client = line[0] % 4;
    line.remove_prefix(1);
    std::vector<tutti::launch::PmiReply> replies;
    const bool stays = line != "x" && world.HandleCommand(client, line, replies);
    if (!stays) {
      if (!replies.empty()) std::abort();
      world.Forget(client);
      admitted.erase(client);
      continue;
    }
    admitted.insert(client);
    if (admitted.size() > 2) std::abort();  // two ranks, each once
    for (const auto& reply : replies) {
      if (!admitted.contains(reply.client)) std::abort();
      if (reply.line.find('\n') != std::string::npos) std::abort();
    }
  }
  return 0;
}
