#include "platform/stream/stream_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "base/threads/start_thread.h"
#include "base/unique_fd.h"
#include "platform/storage/storage_json.h"

namespace tutti::stream {
namespace {

namespace fs = std::filesystem;

constexpr int kBetweenPolls = 100;        // ms
constexpr size_t kLongestLine = 8 << 10;  // a path has at most 4 KiB
constexpr absl::Duration kToTellFailure = absl::Seconds(2);

absl::StatusOr<sockaddr_un> AddressOf(const fs::path& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the socket's path ", path.native(),
                                                   " has more than ", sizeof(address.sun_path) - 1,
                                                   " bytes: name a shorter folder"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  return address;
}

absl::StatusOr<base::UniqueFd> Listen(const fs::path& path) {
  TUTTI_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  base::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return base::ErrnoStatus("socket");
  ::unlink(path.c_str());
  const mode_t before = ::umask(0177);  // nobody else connects, from the first moment on
  const int bound =
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  ::umask(before);
  if (bound != 0 || ::listen(listener.get(), 128) != 0) {
    return base::ErrnoStatus(absl::StrCat("listen at ", path.native()));
  }
  return listener;
}

bool IsOwn(int connection) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::getuid() || peer.uid == 0);
}

std::string ErrorLine(const absl::Status& status) {
  const std::string message = absl::StrReplaceAll(status.message(), {{"\n", " "}, {"\r", " "}});
  return absl::StrCat("error ", storage::ErrorKind(status), " ", message, "\n");
}

// Connection is one process that reads.
class Connection {
 public:
  Connection(base::UniqueFd socket, StreamedObjects& objects, StreamedObjects::Reader reader,
             const ServerOptions& options, const std::atomic<bool>& ending)
      : socket_(std::move(socket)),
        objects_(objects),
        reader_(reader),
        options_(options),
        ending_(ending) {}

  void Serve() {
    if (Answer(absl::StrCat("stream 1 ", objects_.most_bytes(), "\n"))) {
      while (TakeLines()) {
      }
    }
    objects_.Leave(reader_);
    socket_.reset();
    has_ended_ = true;
  }
  bool has_ended() const { return has_ended_; }

 private:
  bool Answer(absl::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  bool HasHungUp() const {
    pollfd look = {socket_.get(), POLLRDHUP, 0};
    return ending_ || (::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP)) != 0);
  }

  // Reads what has come and does it; false at its end.
  bool TakeLines() {
    pollfd look = {socket_.get(), POLLIN, 0};
    if (::poll(&look, 1, kBetweenPolls) <= 0) return !ending_;
    char buffer[16 << 10];
    const ssize_t n = ::read(socket_.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    rest_.append(buffer, static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      if (!Obey(absl::string_view(rest_).substr(begin, end - begin))) return false;
      begin = end + 1;
    }
    rest_.erase(0, begin);
    return rest_.size() <= kLongestLine;
  }

  bool Obey(absl::string_view line) {
    if (absl::ConsumePrefix(&line, "get ")) return Get(std::string(line));
    if (absl::ConsumePrefix(&line, "drop ")) {
      objects_.Drop(reader_, std::string(line));
      return true;
    }
    if (absl::ConsumePrefix(&line, "next ")) {
      ahead_.emplace_back(line);
      return true;
    }
    if (line == "ahead") {
      objects_.SetAhead(reader_, std::exchange(ahead_, {}));
      return true;
    }
    if (line == "list") return List();
    return Answer(ErrorLine(absl::InvalidArgumentError("an unknown request")));
  }

  bool Get(const std::string& path) {
    const auto file = objects_.Get(reader_, path, [this] { return HasHungUp(); });
    return Answer(file.ok() ? absl::StrCat("file ", file->native(), "\n")
                            : ErrorLine(options_.tell(file.status())));
  }

  bool List() {
    std::string text;
    for (const storage::StoredObject& object : objects_.list()) {
      absl::StrAppend(&text, "object ", object.bytes, " ", object.path, "\n");
    }
    return Answer(absl::StrCat(text, "end\n"));
  }

  base::UniqueFd socket_;
  StreamedObjects& objects_;
  const StreamedObjects::Reader reader_;
  const ServerOptions& options_;
  const std::atomic<bool>& ending_;
  std::atomic<bool> has_ended_ = false;
  std::string rest_;  // the beginning of a line
  std::vector<std::string> ahead_;
};

// Connections holds the open connections, and a thread for each.
class Connections {
 public:
  Connections(StreamedObjects& objects, const ServerOptions& options)
      : objects_(objects), options_(options) {}
  ~Connections() {
    ending_ = true;
    for (Served& one : served_) one.thread.join();
  }

  void Take(base::UniqueFd socket) {
    Served& one = served_.emplace_back();
    one.connection =
        std::make_unique<Connection>(std::move(socket), objects_, ++readers_, options_, ending_);
    one.thread = base::StartThread([connection = one.connection.get()] { connection->Serve(); });
    if (!one.thread.joinable()) served_.pop_back();  // who is cut off comes again
  }
  // Returns how many there are, without those that have ended.
  size_t Count() {
    served_.remove_if([](Served& one) {
      if (!one.connection->has_ended()) return false;
      one.thread.join();
      return true;
    });
    return served_.size();
  }

 private:
  struct Served {
    std::unique_ptr<Connection> connection;
    std::thread thread;
  };
  StreamedObjects& objects_;
  const ServerOptions& options_;
  std::atomic<bool> ending_ = false;
  StreamedObjects::Reader readers_ = 0;
  std::list<Served> served_;
};

// Returns the next connection of this user's own; none before the next look.
base::UniqueFd Accept(int listener) {
  pollfd look = {listener, POLLIN, 0};
  if (::poll(&look, 1, kBetweenPolls) <= 0) return {};
  base::UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.valid() && !IsOwn(socket.get())) socket.reset();
  return socket;
}

void ServeAll(int listener, StreamedObjects& objects, const ServerOptions& options) {
  Connections connections(objects, options);
  base::Deadline end = base::Deadline::After(options.linger);
  while (!end.Expired()) {
    if (base::UniqueFd socket = Accept(listener); socket.valid()) {
      connections.Take(std::move(socket));
    }
    if (connections.Count() > 0) end = base::Deadline::After(options.linger);
  }
}

void TellFailure(int listener, const absl::Status& failure) {
  const base::Deadline end = base::Deadline::After(kToTellFailure);
  while (!end.Expired()) {
    const base::UniqueFd socket = Accept(listener);
    if (!socket.valid()) continue;
    base::WriteAll(socket.get(), ErrorLine(failure), "a reader").IgnoreError();
  }
}

}  // namespace

absl::Status Serve(const ServerOptions& options, const Opener& open) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         base::Open(options.socket.native() + ".lock", O_RDWR | O_CREAT, 0600));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd listener, Listen(options.socket));
  std::atomic<bool> is_opening = true;
  const GiveUp give_up = [&](const absl::Status& why) {
    if (is_opening) TellFailure(listener.get(), options.tell(why));
  };
  absl::StatusOr<std::unique_ptr<StreamedObjects>> objects = open(give_up);
  is_opening = false;
  if (objects.ok()) {
    ServeAll(listener.get(), **objects, options);
  } else {
    TellFailure(listener.get(), options.tell(objects.status()));
  }
  ::unlink(options.socket.c_str());
  return objects.status();
}

}  // namespace tutti::stream
