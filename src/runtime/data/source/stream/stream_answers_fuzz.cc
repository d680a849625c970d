// Any bytes as what the program says that streams objects: a reader gets a list, a file or an error
// of it, and does not wait for ever.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/machine/data_socket.h"
#include "base/unique_fd.h"
#include "runtime/data/source/stream/stream_client.h"

namespace tutti::data {
namespace {

constexpr char kAddress[] = "s3://sets/cifar";

void Check(bool holds) {
  if (!holds) std::abort();
}

// Says the bytes to who connects, and closes.
class Program {
 public:
  explicit Program(const std::filesystem::path& path) {
    std::signal(SIGPIPE, SIG_IGN);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    ::unlink(path.c_str());
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    Check(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    Check(::listen(listener_.get(), 128) == 0);
    std::thread([this] { Serve(); }).detach();
  }

  void Set(absl::string_view bytes) {
    const absl::MutexLock lock(&mutex_);
    bytes_ = std::string(bytes);
  }

 private:
  void Serve() {
    while (true) {
      const base::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::string bytes;
      {
        const absl::MutexLock lock(&mutex_);
        bytes = bytes_;
      }
      base::WriteAll(fd.get(), bytes, "a reader").IgnoreError();
    }
  }

  base::UniqueFd listener_;
  absl::Mutex mutex_;
  std::string bytes_;
};

// The cache and the socket, which go at this program's end.
struct Places {
  Places() {
    const auto path = base::DataSocketOf(kAddress, cache.path());
    Check(path.ok());
    socket = *path;
  }
  ~Places() { ::unlink(socket.c_str()); }
  const base::TemporaryDirectory cache;
  std::filesystem::path socket;
};

bool IsOneLine(absl::string_view text) { return !absl::StrContains(text, '\n'); }

}  // namespace
}  // namespace tutti::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tutti::data;  // NOLINT(google-build-using-namespace)
  static const Places places;
  static auto* const program = new Program(places.socket);  // its thread does not end
  program->Set({reinterpret_cast<const char*>(data), size});
  const std::atomic<bool> never = false;
  const auto client = StreamClient::Open(kAddress, {.cache = places.cache.path()}, never);
  if (!client.ok()) return 0;
  if (const auto list = (*client)->List(); list.ok()) {
    for (const StreamedFile& file : *list) Check(file.bytes >= 0 && IsOneLine(file.path));
  }
  (*client)->SetAhead({"a", "b"});
  if (const auto file = (*client)->Get("a"); file.ok()) Check(IsOneLine(file->native()));
  (*client)->Drop("a");
  return 0;
}
