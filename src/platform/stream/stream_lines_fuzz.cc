// Any bytes as what a reader says at the socket by which objects are streamed. It is answered in
// the lines of docs/formats/stream.md, files are named only where objects lie, and those who come
// after it are served.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/storage/objects/memory_store_fake.h"
#include "platform/stream/stream_server.h"

namespace tutti::stream {
namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

// Server serves for all inputs, as for all processes of a node.
class Server {
 public:
  // `folder` is removed at this program's end, when the thread still runs.
  explicit Server(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::signal(SIGPIPE, SIG_IGN);
    for (const char* name : {"a", "b b"}) store_.Set(absl::StrCat("set/", name), name, 1000);
    std::thread([this] {
      const auto open = [this](const GiveUp&) { return Open(); };
      Serve({.socket = Socket(), .linger = absl::InfiniteDuration()}, open).IgnoreError();
    }).detach();
  }

  std::string Folder() const { return (folder_ / "streamed").native(); }
  // Waits until it listens.
  base::UniqueFd Connect() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, Socket().c_str(), sizeof(address.sun_path) - 1);
    while (true) {
      base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      Check(fd.valid());
      const auto* const name = reinterpret_cast<const sockaddr*>(&address);
      if (::connect(fd.get(), name, sizeof(address)) == 0) return fd;
    }
  }

 private:
  std::string Socket() const { return (folder_ / "s").native(); }
  absl::StatusOr<std::unique_ptr<StreamedObjects>> Open() {
    const spec::DataPlace place{.kind = spec::StoreKind::kS3, .container = "b", .path = "set"};
    TUTTI_ASSIGN_OR_RETURN(auto survey,
                           storage::SurveyPlace(store_, place, storage::PlaceType::kAny, {}));
    StreamOptions options{.folder = Folder(), .most_bytes = 1 << 20};
    options.settled_before = 2000;
    return std::make_unique<StreamedObjects>(store_, std::move(survey), std::move(options));
  }

  const std::filesystem::path folder_;
  storage::MemoryStore store_;
};

// Lines are the server's lines until its list's end, or its own.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}
  bool Next(std::string& line) {
    size_t end;
    while ((end = read_.find('\n')) == std::string::npos) {
      std::array<char, 4096> block;
      const ssize_t n = ::recv(fd_, block.data(), block.size(), 0);
      if (n < 0 && errno == EINTR) continue;  // libFuzzer's alarm looks whether it takes too long
      if (n <= 0) return false;
      read_.append(block.data(), static_cast<size_t>(n));
    }
    line = read_.substr(0, end);
    read_.erase(0, end + 1);
    return true;
  }

 private:
  const int fd_;
  std::string read_;
};

bool IsAnswer(absl::string_view line, const std::string& folder) {
  if (absl::ConsumePrefix(&line, "file ")) {
    return absl::StartsWith(line, folder) && !absl::StrContains(line, "/../");
  }
  return line == "object 1 a" || line == "object 3 b b" || absl::StartsWith(line, "error ");
}

// Returns whether all that was said was taken, to the list at its end.
bool Say(const Server& server, absl::string_view bytes) {
  const base::UniqueFd fd = server.Connect();
  const std::string text = absl::StrCat(bytes, "\nlist\n");
  // Answers are few enough for the socket's buffer, which a large input's may be more than.
  std::thread says([&] { base::WriteAll(fd.get(), text, "a server").IgnoreError(); });
  Lines lines(fd.get());
  std::string line;
  const bool greets = lines.Next(line) && absl::StartsWith(line, "stream 1 ");
  bool has_ended = false;
  while (greets && !has_ended && lines.Next(line)) {
    has_ended = line == "end";
    Check(has_ended || IsAnswer(line, server.Folder()));
  }
  ::shutdown(fd.get(), SHUT_RDWR);
  says.join();
  Check(greets);
  return has_ended;
}

}  // namespace
}  // namespace tutti::stream

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tutti::base::TemporaryDirectory folder;
  static auto* const server = new tutti::stream::Server(folder.path());  // its thread does not end
  tutti::stream::Say(*server, {reinterpret_cast<const char*>(data), size});
  tutti::stream::Check(tutti::stream::Say(*server, "get a\ndrop a"));
  return 0;
}
