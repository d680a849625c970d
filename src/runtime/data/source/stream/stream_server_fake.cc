#include "runtime/data/source/stream/stream_server_fake.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/machine/data_socket.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr int kBetweenPolls = 20;  // ms

// The reader may have gone. What is sent fits the socket's buffer.
void Answer(int socket, const std::string& text) {
  if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0) ::shutdown(socket, SHUT_RDWR);
}

}  // namespace

StreamServerFake::StreamServerFake(const std::string& address, fs::path folder,
                                   const fs::path& cache)
    : folder_(std::move(folder)) {
  const auto socket = base::DataSocketOf(address, cache);
  socket_ = socket.value_or("/nowhere");  // who connects fails then
  sockaddr_un where = {};
  where.sun_family = AF_UNIX;
  std::strncpy(where.sun_path, socket_.c_str(), sizeof(where.sun_path) - 1);
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int bound = ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&where), sizeof(where));
  if (bound == 0) ::listen(listener_.get(), 16);
  acceptor_ = std::thread([this] { Run(); });
}

StreamServerFake::~StreamServerFake() {
  ending_ = true;
  acceptor_.join();
  for (std::thread& reader : readers_) reader.join();
  ::unlink(socket_.c_str());
}

void StreamServerFake::Fail(const std::string& path, const std::string& line) {
  const std::lock_guard lock(mutex_);
  failures_[path] = line;
}

void StreamServerFake::Hold(const std::string& path) {
  const std::lock_guard lock(mutex_);
  held_ = path;
  released_.notify_all();
}

void StreamServerFake::AwaitRelease(const std::string& path, std::unique_lock<std::mutex>& lock) {
  while (held_ == path && !ending_) {
    released_.wait_for(lock, std::chrono::milliseconds(kBetweenPolls));
  }
}

void StreamServerFake::CutOffAfter(int gets) {
  const std::lock_guard lock(mutex_);
  gets_left_ = gets;
}

std::vector<std::string> StreamServerFake::gets() const {
  const std::lock_guard lock(mutex_);
  return gets_;
}

std::vector<std::string> StreamServerFake::drops() const {
  const std::lock_guard lock(mutex_);
  return drops_;
}

std::vector<std::string> StreamServerFake::ahead() const {
  const std::lock_guard lock(mutex_);
  return ahead_;
}

void StreamServerFake::Run() {
  while (!ending_) {
    pollfd look = {listener_.get(), POLLIN, 0};
    if (::poll(&look, 1, kBetweenPolls) <= 0) continue;
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    readers_.emplace_back([this, socket] { Serve(socket); });
  }
}

void StreamServerFake::Serve(int socket) {
  const base::UniqueFd own(socket);
  Answer(socket, absl::StrCat("stream 1 ", most_bytes_.load(), "\n"));
  std::string rest;
  while (!ending_) {
    pollfd look = {socket, POLLIN, 0};
    if (::poll(&look, 1, kBetweenPolls) <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(socket, buffer, sizeof(buffer));
    if (n <= 0) return;
    rest.append(buffer, static_cast<size_t>(n));
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
      if (!Obey(socket, rest.substr(0, end))) return;
      rest.erase(0, end + 1);
    }
  }
}

bool StreamServerFake::Obey(int socket, const std::string& line) {
  std::unique_lock lock(mutex_);
  absl::string_view text = line;
  std::error_code error;
  if (absl::ConsumePrefix(&text, "get ")) {
    const std::string path(text);
    gets_.push_back(path);
    AwaitRelease(path, lock);
    if (gets_left_ == 0) {
      gets_left_ = -1;
      return false;
    }
    if (gets_left_ > 0) --gets_left_;
    const std::string failure = failures_[path];
    if (!failure.empty()) {
      Answer(socket, failure + "\n");
    } else if (fs::exists(folder_ / path, error)) {
      Answer(socket, absl::StrCat("file ", (folder_ / path).string(), "\n"));
    } else {
      Answer(socket, absl::StrCat("error not_found ", path, ": no such object\n"));
    }
  } else if (absl::ConsumePrefix(&text, "drop ")) {
    drops_.emplace_back(text);
  } else if (absl::ConsumePrefix(&text, "next ")) {
    coming_.emplace_back(text);
  } else if (text == "ahead") {
    ahead_ = std::exchange(coming_, {});
  } else if (text == "list") {
    std::string answer;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      absl::StrAppend(&answer, "object ", entry.file_size(), " ", entry.path().filename().string(),
                      "\n");
    }
    Answer(socket, answer + "end\n");
  }
  return true;
}

}  // namespace tutti::data
