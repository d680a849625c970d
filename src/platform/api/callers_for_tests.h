// Callers makes calls at the same time, for tests.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/test_patience.h"
#include "http/client/client.h"

namespace tutti::api {

inline constexpr char kUserToken[] = "of-a-user-0123456789";
inline constexpr char kLauncherKey[] = "of-launchers-0123456789";

// Calls in threads of their own.
class Callers {
 public:
  ~Callers() { Join(); }
  void Call(const std::string& url, const std::string& token, http::ClientRequest request) {
    request.timeout = base::Patient(absl::Seconds(60));
    threads_.emplace_back([this, url, token, request] {
      http::Client client(url, token);
      ++sent_;
      auto response = client.Send(request);
      absl::MutexLock lock(&mutex_);
      answers_.push_back(response.ok() ? *std::move(response) : http::ClientResponse{});
    });
  }
  // Once all have answered.
  std::vector<http::ClientResponse> Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    absl::MutexLock lock(&mutex_);
    return std::exchange(answers_, {});
  }
  bool AwaitSent(int count) const {
    base::AwaitPatiently(absl::Seconds(30), [&] { return sent_ >= count; });
    return sent_ >= count;
  }

 private:
  std::atomic<int> sent_ = 0;
  absl::Mutex mutex_;
  std::vector<http::ClientResponse> answers_;
  std::vector<std::thread> threads_;
};

}  // namespace tutti::api
