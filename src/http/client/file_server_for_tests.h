// FileServer serves files on loopback, for tests of what fetches or checks inputs.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/test_patience.h"
#include "http/server/server.h"

namespace tutti::http {

// Serves files by their path, of which "/silent" never comes, and counts how many it has sent.
// Thread-safe.
class FileServer {
 public:
  struct File {
    std::string content, tag;
  };

  FileServer() {
    auto server = Server::Start({}, [this](const Request& request, Connection& connection) {
      if (request.path == "/silent") {
        base::AwaitPatiently(absl::Seconds(20), [&] { return connection.Closed(); });
      }
      return Answer(request);
    });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string url(const std::string& path) const { return server_->url() + path; }
  void Put(const std::string& path, const std::string& content, const std::string& tag) {
    absl::MutexLock lock(&mutex_);
    files_[path] = {content, tag};
  }
  int sent() const {
    absl::MutexLock lock(&mutex_);
    return sent_;
  }
  int asked() const {  // also by HEAD
    absl::MutexLock lock(&mutex_);
    return asked_;
  }

 private:
  Response Answer(const Request& request) {
    absl::MutexLock lock(&mutex_);
    ++asked_;
    const auto found = files_.find(request.path);
    if (found == files_.end()) return {.status = 404};
    Response response{.status = 200, .body = found->second.content};
    if (!found->second.tag.empty()) response.headers.push_back({"ETag", found->second.tag});
    if (request.method == "GET") ++sent_;
    return response;
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, File> files_ ABSL_GUARDED_BY(mutex_);
  int sent_ ABSL_GUARDED_BY(mutex_) = 0, asked_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Server> server_;
};

}  // namespace tutti::http
