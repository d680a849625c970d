// Speaks for `tutti-storage stream` in tests: serves the files of a folder, in this process, at the
// socket where a StreamClient looks for the program. It can be told to fail and to cut readers off,
// and keeps what it is asked. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace tutti::data {

class StreamServerFake {
 public:
  // `cache` as in the reader's StreamOptions.
  StreamServerFake(const std::string& address, std::filesystem::path folder,
                   const std::filesystem::path& cache);
  ~StreamServerFake();

  // The line that a request for this file gets, "error KIND MESSAGE", until it is "".
  void Fail(const std::string& path, const std::string& line);
  // Cuts the reader off after so many further requests for a file, instead of an answer.
  void CutOffAfter(int gets);
  // Does not answer requests for this file until another is named.
  void Hold(const std::string& path);
  void set_most_bytes(int64_t bytes) { most_bytes_ = bytes; }

  std::vector<std::string> gets() const;
  std::vector<std::string> drops() const;
  std::vector<std::string> ahead() const;  // what was said last

 private:
  void Run();
  void Serve(int socket);
  bool Obey(int socket, const std::string& line);  // false: cut off
  void AwaitRelease(const std::string& path, std::unique_lock<std::mutex>& lock);

  const std::filesystem::path folder_;
  std::filesystem::path socket_;
  base::UniqueFd listener_;
  std::atomic<bool> ending_ = false;
  std::atomic<int64_t> most_bytes_ = int64_t{1} << 40;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::string held_;
  std::map<std::string, std::string> failures_;
  int gets_left_ = -1;  // -1: no limit
  std::vector<std::string> gets_, drops_, ahead_, coming_;
  std::vector<std::thread> readers_;  // the acceptor's, until it has ended
  std::thread acceptor_;
};

}  // namespace tutti::data
