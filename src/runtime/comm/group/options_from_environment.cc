#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "runtime/comm/group_options.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {
namespace {

std::string Text(const char* name, absl::string_view otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string(otherwise) : std::string(value);
}

absl::StatusOr<int> Number(const char* name, int otherwise, int least, int most) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "=\"", text, "\": not a number from ", least, " to ", most));
  }
  return value;
}

absl::StatusOr<GroupOptions::Transport> TransportFromEnvironment() {
  const std::string text = Text("TUTTI_TRANSPORT", "auto");
  if (text == "auto") return GroupOptions::Transport::kAuto;
  if (text == "tcp") return GroupOptions::Transport::kTcp;
  if (text == "shm") return GroupOptions::Transport::kSharedMemory;
  if (text == "ucx") return GroupOptions::Transport::kUcx;
  return absl::InvalidArgumentError(
      absl::StrCat("TUTTI_TRANSPORT=\"", text, "\": not one of auto, tcp, shm, ucx"));
}

absl::StatusOr<bool> Flag(const char* name) {
  TUTTI_ASSIGN_OR_RETURN(const int value, Number(name, 0, 0, 1));
  return value == 1;
}

}  // namespace

absl::StatusOr<GroupOptions> GroupOptionsFromEnvironment() {
  GroupOptions options;
  const bool has_rank = std::getenv("RANK") != nullptr;
  // A newcomer to a running group has no rank yet.
  if (!has_rank && std::getenv("TUTTI_ELASTIC") == nullptr) return options;
  if (has_rank && std::getenv("WORLD_SIZE") == nullptr) {
    return absl::InvalidArgumentError("RANK is set, but WORLD_SIZE is not");
  }
  TUTTI_ASSIGN_OR_RETURN(options.size, Number("WORLD_SIZE", 1, 1, kMostRanks));
  TUTTI_ASSIGN_OR_RETURN(options.rank, Number("RANK", 0, 0, options.size - 1));
  TUTTI_ASSIGN_OR_RETURN(options.node, Number("NODE_RANK", 0, 0, kMostRanks - 1));
  TUTTI_ASSIGN_OR_RETURN(options.master_port, Number("MASTER_PORT", options.master_port, 1, 65535));
  options.master_address = Text("MASTER_ADDR", options.master_address);
  // Other launchers say where the master is and not who this node is.
  const bool knows_master = std::getenv("MASTER_ADDR") != nullptr;
  options.address = Text("TUTTI_NODE_ADDRESS", knows_master ? "" : options.address);
  options.token = Text("TUTTI_JOB_TOKEN", "");
  TUTTI_ASSIGN_OR_RETURN(options.transport, TransportFromEnvironment());
  TUTTI_ASSIGN_OR_RETURN(options.tcp_streams,
                         Number("TUTTI_COMM_STREAMS", options.tcp_streams, 0, kMostTcpStreams));
  TUTTI_ASSIGN_OR_RETURN(options.encrypt, Flag("TUTTI_COMM_TLS"));
  TUTTI_ASSIGN_OR_RETURN(options.deterministic, Flag("TUTTI_COMM_DETERMINISTIC"));
  TUTTI_ASSIGN_OR_RETURN(options.check_calls, Flag("TUTTI_COMM_CHECK"));
  TUTTI_ASSIGN_OR_RETURN(options.elastic, Flag("TUTTI_ELASTIC"));
  options.group_file = Text("TUTTI_GROUP_FILE", "");
  options.members =
      absl::StrSplit(Text("TUTTI_GROUP_MEMBERS", ""), absl::ByAnyChar(", "), absl::SkipEmpty());
  return options;
}

}  // namespace tutti::comm
