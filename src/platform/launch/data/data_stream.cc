#include "platform/launch/data/data_stream.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/machine/data_socket.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "base/threads/start_thread.h"
#include "platform/storage/storage_json.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kToListen = absl::Seconds(30), kToList = absl::Hours(1);
constexpr absl::Duration kBetweenTries = absl::Milliseconds(20);
constexpr absl::Duration kAfterFailure = absl::Seconds(1);
constexpr int kBetweenPolls = 50;  // ms
constexpr int kMostEnds = 5;       // of the program, in a row, before it has listed the place

base::UniqueFd ConnectTo(const fs::path& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.valid() &&
      ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    socket.reset();
  }
  return socket;
}

// Returns the error that a line "error KIND MESSAGE" tells.
absl::Status StreamError(absl::string_view line) {
  absl::ConsumePrefix(&line, "error ");
  const size_t space = line.find(' ');
  if (space == absl::string_view::npos) return absl::InternalError(line);
  return absl::Status(storage::CodeOfErrorKind(line.substr(0, space)), line.substr(space + 1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DataStream>> DataStream::Open(
    fs::path program, storage::StorageRequest request, const std::string& address,
    storage::StreamHome home, const std::string& name, const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(fs::path socket, base::DataSocketOf(address, home.cache, name));
  std::unique_ptr<DataStream> stream(
      new DataStream(std::move(program), std::move(request), std::move(socket), std::move(home)));
  TUTTI_RETURN_IF_ERROR(stream->Connect(cancelled));
  stream->home_.list.clear();  // the job's processes could write another one there
  stream->keeper_ = base::StartThread([raw = stream.get()] { raw->Keep(); });
  return stream;
}

DataStream::~DataStream() {
  ending_ = true;
  if (keeper_.joinable()) keeper_.join();
  connection_.reset();
  if (!running_) return;
  running_->SignalGroup(SIGTERM).IgnoreError();
  running_->Wait(base::Deadline::After(base::kUnkillable)).IgnoreError();
}

// One that finds another program there ends at once. The launcher may have waited for it, as for
// all that ends on its node, so that the descriptor alone tells.
absl::Status DataStream::StartUnlessItRuns() {
  pollfd end = {running_ ? running_->pidfd() : -1, POLLIN, 0};
  if (running_ && ::poll(&end, 1, 0) == 0) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(running_, storage::StartStream(program_, request_, socket_, home_));
  return absl::OkStatus();
}

// One that another job has started may end just now.
absl::Status DataStream::Connect(const std::atomic<bool>& cancelled) {
  for (int ends = 0; ends <= kMostEnds; ++ends) {
    TUTTI_RETURN_IF_ERROR(Reach(cancelled));
    TUTTI_ASSIGN_OR_RETURN(const std::string line, Greeting(cancelled));
    if (absl::StartsWith(line, "stream 1 ")) return absl::OkStatus();
    if (!line.empty()) return StreamError(line);
  }
  return absl::UnavailableError("the program tutti-storage ends before it has listed the place");
}

absl::Status DataStream::Reach(const std::atomic<bool>& cancelled) {
  const base::Deadline deadline = base::Deadline::After(kToListen);
  while (!cancelled) {
    if (connection_ = ConnectTo(socket_); connection_.valid()) return absl::OkStatus();
    if (deadline.Expired()) {
      return absl::UnavailableError(
          absl::StrCat("the program tutti-storage does not listen at ", socket_.string()));
    }
    TUTTI_RETURN_IF_ERROR(StartUnlessItRuns());
    absl::SleepFor(kBetweenTries);
  }
  return absl::CancelledError("cancelled");
}

// "" if the program has ended.
absl::StatusOr<std::string> DataStream::Greeting(const std::atomic<bool>& cancelled) {
  const base::Deadline deadline = base::Deadline::After(kToList);
  std::string line;
  while (!absl::EndsWith(line, "\n")) {
    if (cancelled) return absl::CancelledError("cancelled");
    if (deadline.Expired()) return absl::UnavailableError("tutti-storage has not listed it");
    pollfd look = {connection_.get(), POLLIN, 0};
    if (::poll(&look, 1, kBetweenPolls) <= 0) continue;
    char byte = 0;  // a greeting is short
    if (::read(connection_.get(), &byte, 1) != 1) return "";
    line.push_back(byte);
  }
  line.pop_back();
  return line;
}

// It says nothing more, so that what can be read is its end.
void DataStream::Keep() {
  while (!ending_) {
    pollfd look = {connection_.get(), POLLIN, 0};
    if (::poll(&look, connection_.valid() ? 1 : 0, kBetweenPolls) <= 0 && connection_.valid()) {
      continue;
    }
    if (ending_) return;
    const absl::Status again = Connect(ending_);
    if (again.ok() || ending_) continue;
    connection_.reset();
    spdlog::warn("{}", std::string(again.message()));
    const base::Deadline next = base::Deadline::After(kAfterFailure);
    while (!ending_ && !next.Expired()) absl::SleepFor(kBetweenTries);
  }
}

}  // namespace tutti::launch
