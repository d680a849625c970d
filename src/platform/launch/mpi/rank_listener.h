// RankListener is the Unix socket by which the ranks that mpirun starts on a node reach its
// launcher. Each gets its rank's output pipes, environment and command, and reports its end; so a
// rank's output, events and environment are the same whoever started it. mpirun's agent connects
// there too, and so do srun's tasks, each with the PMIx variables of a rank that the launcher then
// starts itself. Only processes of this user are accepted. Not thread-safe.
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

// RankMessage is what a client has sent.
struct RankMessage {
  // kTerminating: the rank is to end, since another one has failed, or its task of Slurm has gone.
  // kFailed: the rank's command could not be begun, for `reason`; no kEnded follows.
  enum class Kind { kRank, kTerminating, kEnded, kFailed, kAgent, kPmixTask };
  Kind kind;
  int client;  // who sent it; for SendStart and AnswerAgent
  int rank = -1;
  pid_t pid = 0;            // kRank
  base::ExitStatus status;  // kEnded; a command whose shim has gone without a word was killed
  std::string reason;       // kFailed
  std::string host;         // kAgent
  std::string command;      // kAgent
  std::map<std::string, std::string> variables;  // kPmixTask
};

class RankListener {
 public:
  static absl::StatusOr<RankListener> Open(const std::filesystem::path& socket);

  // Adds what poll(2) is to wait for.
  void AddTo(std::vector<pollfd>& waiting) const;
  // Accepts those that have connected and returns what has been sent since the last call.
  std::vector<RankMessage> Take();

  // Tells a rank what it is to run: two descriptors that become its output, those of the view of
  // files that it is to have (base::ReadOnlyView), and `start`, the fields "arguments",
  // "environment" and "directory".
  absl::Status SendStart(int client, int stdout_fd, int stderr_fd, const std::vector<int>& view,
                         const nlohmann::json& start);
  // Tells the rank's task of Slurm, if there is one, how the rank has ended.
  void SendEnd(int rank, base::ExitStatus status);
  // Tells an agent "" or why not.
  void AnswerAgent(int client, const std::string& error);

 private:
  struct Client {
    int number;
    LineSocket socket;
    int rank = -1;
    bool is_pmix_task = false;
    bool begun = false;  // its rank's command runs
    bool over = false;   // nothing more is expected of it
  };
  explicit RankListener(base::UniqueFd listener) : listener_(std::move(listener)) {}
  void AcceptAll();
  static RankMessage OfDisconnected(const Client& client);
  std::optional<RankMessage> Parse(Client& client, const nlohmann::json& text);
  Client* Find(int number);

  base::UniqueFd listener_;
  std::list<Client> clients_;
  int next_number_ = 0;
};

// Connects to the socket of a launcher.
absl::StatusOr<base::UniqueFd> ConnectToLauncher(const std::string& socket);

}  // namespace tutti::launch
