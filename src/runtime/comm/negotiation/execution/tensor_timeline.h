// Timeline records what happens to every tensor, as a file that chrome://tracing and Perfetto show:
// one row a tensor, with its phases (negotiation, queue, packing, the collective, unpacking) as
// bars.
//
// The file is valid JSON after every write (a kill in the middle of one costs the closing bracket
// at most, which the format does not need, unless a name is longer than a page): each write
// replaces the closing bracket by new events and a closing bracket. A thread of its own writes, ten
// times a second; who records appends to a list in memory and never waits for the disk. When more
// comes than can be written, events are dropped, and the file says how many.
//
// Thread-safe. Phases of one tensor nest; End without Begin (the recording started between them) is
// ignored.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace tutti::comm {

class Timeline {
 public:
  // Begins the file anew.
  static absl::StatusOr<std::unique_ptr<Timeline>> Start(const std::string& path, int rank);
  ~Timeline() { Stop(); }

  // Closes what is open and writes everything; what is recorded later is not.
  void Stop();

  void Begin(const std::string& tensor, std::string phase);
  void End(const std::string& tensor);
  // Marks a tick on the tensor's row, or (tensor "") over all of them.
  void Mark(const std::string& tensor, std::string what);

 private:
  struct Event {
    char type;
    int row;
    int64_t micros;
    std::string name;
  };

  Timeline(base::UniqueFd file, int rank);
  int RowOf(const std::string& tensor);  // with the mutex held
  void Add(char type, int row, std::string name);
  void Run();
  void Write(const std::vector<Event>& events, size_t dropped);
  // These are the writer's, as block_ and end_.
  void Append(absl::string_view event);
  void Flush();

  const std::chrono::steady_clock::time_point start_;
  const base::UniqueFd file_;
  size_t end_ = 0;     // where the closing bracket lies
  std::string block_;  // what comes in its place next

  std::mutex mutex_;  // guards what follows, save the thread
  std::condition_variable wake_;
  std::vector<Event> events_;
  size_t dropped_ = 0;
  std::unordered_map<std::string, int> rows_;
  std::vector<int> depth_;  // of open phases, by row
  bool stopping_ = false;
  std::once_flag joined_;
  std::thread thread_;
};

}  // namespace tutti::comm
