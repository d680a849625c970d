// FileServerKeeper runs the file servers that HOME/file-servers.json lists, as long as it lives: it
// looks at the list a few times a second, so that who changes it needs no call of the service. What
// is done for one server, which may wait for its disk or its process, holds up no other. The
// servers go on when it ends, and the next keeper takes them over. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/threads/work_queues.h"
#include "platform/file_server/ganesha.h"
#include "platform/file_server/served_folder.h"

namespace tutti::file_server {

struct KeeperOptions {
  std::filesystem::path home;      // the service's
  std::string program = kGanesha;  // looked up in PATH
  absl::Duration between_looks = absl::Milliseconds(500);
  const base::Clock* clock = nullptr;  // outlives the keeper
};

class FileServerKeeper {
 public:
  explicit FileServerKeeper(KeeperOptions options);
  // Waits until all looks have ended, which may be ending servers: some 20 s, or as long as a disk
  // hangs.
  ~FileServerKeeper();
  FileServerKeeper(const FileServerKeeper&) = delete;
  FileServerKeeper& operator=(const FileServerKeeper&) = delete;

  // Starts the threads: one that looks, and one for each server.
  void Run();
  // Has done what is due; without threads, as a test, it does it itself.
  void Look();

 private:
  static constexpr size_t kMostThreads = 64;
  struct Served {
    explicit Served(ServedFolder of) : folder(std::move(of)) {}
    ServedFolder folder;                // of who has it at hand
    std::atomic<bool> is_busy = false;  // or waits for a thread
    std::atomic<bool> is_gone = false;  // it was removed
  };
  // Has that done for the server; not while the last one is under way: the next look asks again.
  void Dispatch(const std::string& name, const std::function<void(Served&)>& task);
  void RemoveOthers(const spec::FileServers& servers);

  const KeeperOptions options_;
  std::map<std::string, std::shared_ptr<Served>> served_;  // of the thread that looks
  std::string trouble_;                                    // of the list, as it was logged
  absl::Mutex mutex_;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
  base::WorkQueues work_{kMostThreads};  // a queue for each server, by its name
};

}  // namespace tutti::file_server
