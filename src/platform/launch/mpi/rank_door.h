// Where the ranks that mpirun starts on a node come to its launcher: a Unix socket. Each gets its
// rank's output pipes, environment and command, and reports its end; so a rank's output, events and
// environment are the same whoever started it. mpirun's agent comes by the same door, and so do
// srun's tasks, each with the place in PMIx of a rank that the launcher then starts itself. Only
// processes of this user are let in. Not thread-safe.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <filesystem>
#include <list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/process/child_process.h"
#include "platform/launch/node/line_socket.h"

namespace tutti::launch {

// What one that came said.
struct DoorNews {
  // kTold: the rank is to end, since another one has failed; whose place has gone is to end too.
  // kFailed: the rank's command could not be begun, for `reason`; no kEnded follows.
  enum class Kind { kRank, kTold, kEnded, kFailed, kAgent, kPlace };
  Kind kind;
  int visitor;  // who; for Welcome and Answer
  int rank = -1;
  pid_t pid = 0;            // kRank
  base::ExitStatus status;  // kEnded; a command whose shim has gone without a word was killed
  std::string reason;       // kFailed
  std::string host;         // kAgent
  std::string command;      // kAgent
  std::map<std::string, std::string> variables;  // kPlace
};

class RankDoor {
 public:
  static absl::StatusOr<RankDoor> Open(const std::filesystem::path& socket);

  // For poll(2).
  void AddTo(std::vector<pollfd>& waiting) const;
  // Lets in who waits and returns what has been said since the last call.
  std::vector<DoorNews> Take();

  // Gives a rank what it is to be: two descriptors that become its output, and `start`, the fields
  // "arguments", "environment" and "directory".
  absl::Status Welcome(int visitor, int stdout_fd, int stderr_fd, const nlohmann::json& start);
  // To who brought the rank's place, if somebody has: how the rank has ended.
  void TellEnd(int rank, base::ExitStatus status);
  // "" or why not, to an agent.
  void Answer(int visitor, const std::string& error);

 private:
  struct Visitor {
    int number;
    LineSocket socket;
    int rank = -1;
    bool is_place = false;
    bool begun = false;  // its rank's command runs
    bool over = false;   // nothing more is expected of it
  };
  explicit RankDoor(base::UniqueFd listener) : listener_(std::move(listener)) {}
  void LetIn();
  static DoorNews Gone(const Visitor& visitor);
  std::optional<DoorNews> Understand(Visitor& visitor, const nlohmann::json& message);
  Visitor* Find(int number);

  base::UniqueFd listener_;
  std::list<Visitor> visitors_;
  int next_number_ = 0;
};

// Connects to a launcher's door.
absl::StatusOr<base::UniqueFd> KnockAt(const std::string& socket);

}  // namespace tutti::launch
