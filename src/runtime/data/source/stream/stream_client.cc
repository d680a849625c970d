#include "runtime/data/source/stream/stream_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/machine/data_socket.h"
#include "base/status.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kToStart = absl::Seconds(30);  // until the program listens
// Until a launcher whose program has ended has started it again, with the key of its node and the
// site's bound, which a reader does not know.
constexpr absl::Duration kToBeStartedAgain = absl::Seconds(5);
constexpr absl::Duration kToAnswer = absl::Minutes(30);  // a large shard over a slow link
constexpr absl::Duration kBetweenTries = absl::Milliseconds(20);
constexpr int kBetweenLooks = 200;  // ms, at whether it is cancelled
constexpr int kMostEnds = 5;        // of the program, in a row, over one request
constexpr char kProgram[] = "tutti-storage";

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<fs::path> CacheOf(const StreamOptions& options) {
  fs::path cache = options.cache.empty() ? fs::path(Variable("TUTTI_DATA_CACHE")) : options.cache;
  if (cache.empty() && !Variable("XDG_CACHE_HOME").empty()) {
    cache = fs::path(Variable("XDG_CACHE_HOME")) / "tutti/data";
  }
  if (cache.empty() && !Variable("HOME").empty()) {
    cache = fs::path(Variable("HOME")) / ".cache/tutti/data";
  }
  if (cache.empty()) {
    return absl::FailedPreconditionError(
        "no folder for data from stores: name one in TUTTI_DATA_CACHE");
  }
  std::error_code error;
  return fs::absolute(cache, error);
}

// Beside this process's own program, as it is installed; else by PATH.
std::string ProgramOf(const StreamOptions& options) {
  if (!options.program.empty()) return options.program.string();
  if (std::string named = Variable("TUTTI_STORAGE_PROGRAM"); !named.empty()) return named;
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / kProgram;
  return ::access(beside.c_str(), X_OK) == 0 ? beside.string() : kProgram;
}

absl::StatusCode CodeOf(absl::string_view kind) {
  constexpr std::array<std::pair<absl::string_view, absl::StatusCode>, 7> kCodes = {
      {{"credentials", absl::StatusCode::kPermissionDenied},
       {"not_found", absl::StatusCode::kNotFound},
       {"network", absl::StatusCode::kUnavailable},
       {"disk_full", absl::StatusCode::kResourceExhausted},
       {"changed", absl::StatusCode::kAborted},
       {"damaged", absl::StatusCode::kDataLoss},
       {"usage", absl::StatusCode::kInvalidArgument}}};
  for (const auto& [name, code] : kCodes) {
    if (name == kind) return code;
  }
  return absl::StatusCode::kFailedPrecondition;
}

// What a line that begins with "error " says.
absl::Status StreamErrorOf(absl::string_view line) {
  absl::ConsumePrefix(&line, "error ");
  const size_t space = line.find(' ');
  if (space == absl::string_view::npos) return absl::InternalError(line);
  return absl::Status(CodeOf(line.substr(0, space)), line.substr(space + 1));
}

// The program has ended, or somebody else is at the socket.
absl::Status Ended() { return absl::InternalError("tutti-storage has ended"); }
bool HasEnded(const absl::Status& status) { return absl::IsInternal(status); }

}  // namespace

absl::StatusOr<std::unique_ptr<StreamClient>> StreamClient::Open(
    const std::string& address, const StreamOptions& options, const std::atomic<bool>& cancelled) {
  std::unique_ptr<StreamClient> client(new StreamClient(address, options, cancelled));
  TUTTI_ASSIGN_OR_RETURN(client->options_.cache, CacheOf(options));
  TUTTI_ASSIGN_OR_RETURN(client->socket_path_, base::DataSocketOf(address, client->options_.cache,
                                                                  Variable("TUTTI_DATA_STREAM")));
  TUTTI_RETURN_IF_ERROR(client->Connect());
  return client;
}

absl::Status StreamClient::StartProgram() {
  base::ChildOptions start;
  start.arguments = {ProgramOf(options_), "stream",  address_,      "--socket",
                     socket_path_,        "--cache", options_.cache};
  if (options_.most_bytes > 0) {
    start.arguments.push_back("--most-bytes");
    start.arguments.push_back(absl::StrCat(options_.most_bytes));
  }
  start.environment = base::CurrentEnvironment();
  start.directory = "/";
  // It outlives this process where others read, and must hold no pipe of it open.
  start.new_session = true;
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd nowhere, base::Open("/dev/null", O_WRONLY));
  start.stdout_fd = start.stderr_fd = nowhere.get();
  auto started = base::ChildProcess::Start(start);
  if (started.ok()) {
    program_ = *std::move(started);
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "the program tutti-storage, which reads ", address_, ", cannot be started (",
      started.status().message(),
      "): build it with `tools/setup storage && tools/build tutti-storage`, and put it beside this "
      "program, into PATH, or name it in TUTTI_STORAGE_PROGRAM"));
}

// Each process that finds nobody there starts a program; all of these but one end at once.
absl::StatusOr<base::UniqueFd> StreamClient::Reach(base::Deadline deadline) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_path_.c_str(), socket_path_.native().size() + 1);
  const base::Deadline others = base::Deadline::After(kToBeStartedAgain);
  while (!cancelled_) {
    base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) return base::ErrnoStatus("socket");
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
      had_program_ = had_program_ || !program_.has_value();
      return socket;
    }
    const bool runs =
        program_.has_value() && !program_->Wait(base::Deadline::After(absl::ZeroDuration())).ok();
    if (deadline.Expired()) {
      if (runs) program_->SignalGroup(SIGKILL).IgnoreError();
      return absl::UnavailableError(
          absl::StrCat("the program tutti-storage does not listen at ", socket_path_.string()));
    }
    // In a job a datastore's credentials have its launcher alone, which starts the program.
    const bool is_launchers =
        absl::StartsWith(address_, "azureml:") && !Variable("TUTTI_DATA_STREAM").empty();
    const bool may_start = !had_program_ || (!is_launchers && others.Expired());
    if (!runs && may_start) TUTTI_RETURN_IF_ERROR(StartProgram());
    absl::SleepFor(kBetweenTries);
  }
  return absl::CancelledError("cancelled");
}

absl::Status StreamClient::Connect() {
  for (int ends = 0;; ++ends) {
    TUTTI_ASSIGN_OR_RETURN(socket_, Reach(base::Deadline::After(kToStart)));
    rest_.clear();
    const absl::Status greeting = TakeGreeting();
    if (!HasEnded(greeting)) return greeting;
    if (ends == kMostEnds) {
      return absl::UnavailableError(
          absl::StrCat("the program tutti-storage ends before it has listed ", address_));
    }
  }
}

absl::Status StreamClient::TakeGreeting() {
  TUTTI_ASSIGN_OR_RETURN(const std::string line, Line());
  absl::string_view text = line;
  if (absl::StartsWith(text, "error ")) return StreamErrorOf(text);
  if (!absl::ConsumePrefix(&text, "stream 1 ") || !absl::SimpleAtoi(text, &most_bytes_)) {
    return Ended();
  }
  if (ahead_.empty()) return absl::OkStatus();
  SetAhead(std::move(ahead_));
  return absl::OkStatus();
}

absl::Status StreamClient::Say(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Ended();
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> StreamClient::Line() {
  const base::Deadline deadline = base::Deadline::After(kToAnswer);
  size_t end = rest_.find('\n');
  while (end == std::string::npos) {
    if (cancelled_ || deadline.Expired()) {
      socket_.reset();  // the answer may still come, and the next request has another
      return cancelled_ ? absl::CancelledError("cancelled")
                        : absl::UnavailableError("tutti-storage has not answered");
    }
    pollfd look = {socket_.get(), POLLIN, 0};
    if (::poll(&look, 1, kBetweenLooks) <= 0) continue;
    char buffer[16 << 10];
    const ssize_t n = ::read(socket_.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Ended();
    const size_t before = rest_.size();
    rest_.append(buffer, static_cast<size_t>(n));
    end = rest_.find('\n', before);
  }
  std::string line = rest_.substr(0, end);
  rest_.erase(0, end + 1);
  return line;
}

template <typename Answer>
absl::StatusOr<Answer> StreamClient::Ask(const std::string& request,
                                         absl::StatusOr<Answer> (StreamClient::*take)()) {
  for (int ends = 0;; ++ends) {
    absl::StatusOr<Answer> answer = Ended();
    if (Say(request).ok()) answer = (this->*take)();
    if (!HasEnded(answer.status())) return answer;
    if (ends == kMostEnds) {
      return absl::UnavailableError(absl::StrCat("the program tutti-storage, which reads ",
                                                 address_, ", ends again and again"));
    }
    TUTTI_RETURN_IF_ERROR(Connect());
  }
}

absl::StatusOr<std::vector<StreamedFile>> StreamClient::TakeList() {
  std::vector<StreamedFile> files;
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const std::string line, Line());
    absl::string_view text = line;
    if (text == "end") return files;
    const bool is_object = absl::ConsumePrefix(&text, "object ");
    const size_t space = text.find(' ');
    StreamedFile file;
    if (!is_object || space == absl::string_view::npos ||
        !absl::SimpleAtoi(text.substr(0, space), &file.bytes) || file.bytes < 0) {
      return StreamErrorOf(line);
    }
    file.path = std::string(text.substr(space + 1));
    files.push_back(std::move(file));
  }
}

absl::StatusOr<fs::path> StreamClient::TakeFile() {
  TUTTI_ASSIGN_OR_RETURN(const std::string line, Line());
  absl::string_view text = line;
  if (absl::ConsumePrefix(&text, "file ")) return fs::path(std::string(text));
  return StreamErrorOf(line);
}

absl::StatusOr<std::vector<StreamedFile>> StreamClient::List() {
  return Ask("list\n", &StreamClient::TakeList);
}

absl::StatusOr<fs::path> StreamClient::Get(const std::string& path) {
  return Ask(absl::StrCat("get ", path, "\n"), &StreamClient::TakeFile);
}

// A program that has ended holds nothing, and the next request finds out.
void StreamClient::Drop(const std::string& path) {
  Say(absl::StrCat("drop ", path, "\n")).IgnoreError();
}

void StreamClient::SetAhead(std::vector<std::string> paths) {
  ahead_ = std::move(paths);
  std::string text;
  for (const std::string& path : ahead_) absl::StrAppend(&text, "next ", path, "\n");
  Say(absl::StrCat(text, "ahead\n")).IgnoreError();
}

}  // namespace tutti::data
