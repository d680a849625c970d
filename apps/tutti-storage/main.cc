// The program `tutti-storage`: moves objects between a store and a folder. It reads one request
// from standard input and answers in lines of JSON (docs/formats/storage-program.md); service and
// launcher run it (src/platform/storage/storage_program.h). A signal ends it at once, but for a
// put, which gives back first what the store has begun to take; the same request goes on where it
// was.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "base/threads/start_thread.h"
#include "platform/storage/arrow/arrow_processor.h"
#include "platform/storage/arrow/arrow_store.h"
#include "platform/storage/storage_json.h"
#include "platform/storage/transfer/activity.h"
#include "platform/storage/transfer/serve_request.h"

namespace tutti::storage {
namespace {

// How long nothing may happen. The libraries have limits of their own, but not for each case.
constexpr absl::Duration kLongestSilence = absl::Minutes(10);
constexpr absl::Duration kBetweenLooks = absl::Seconds(1);

std::atomic<bool> told_to_end = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

// Writes lines of the answer; after the last one the process has ended.
class Answer {
 public:
  void Write(const AnswerLine& line) {
    absl::MutexLock lock(&mutex_);
    WriteLine(line);
    // A list has many lines, and nobody waits for one of them.
    if (!std::holds_alternative<StoredObject>(line)) std::fflush(stdout);
  }
  [[noreturn]] void End(const AnswerLine& line) {
    absl::MutexLock lock(&mutex_);
    WriteLine(line);
    std::fflush(stdout);
    // Threads of the providers' libraries may still run, and what they use must stay.
    ::_exit(std::holds_alternative<StorageDone>(line) ? 0 : 1);
  }

 private:
  void WriteLine(const AnswerLine& line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::string text = ToJson(line);
    text.push_back('\n');
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  absl::Mutex mutex_;
};

void WatchSilence(const Activity& activity, const StorageRequest& request, Answer& answer) {
  SilenceWatch watch(activity, base::SteadyNow());
  while (watch.Look(BytesOfConnections(), base::SteadyNow()) < kLongestSilence) {
    absl::SleepFor(kBetweenLooks);
  }
  answer.End(
      FailureOf(absl::UnavailableError("the store has not answered for 10 minutes"), request));
}

[[noreturn]] void Run() {
  Answer answer;
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const absl::StatusOr<StorageRequest> request = StorageRequestFromJson(text);
  if (!request.ok()) answer.End(StorageFailure{request.status(), ""});
  const auto store = OpenArrowStore(request->place, request->credentials, request->connections);
  if (!store.ok()) answer.End(FailureOf(store.status(), *request));
  Activity activity;
  Attempts attempts;
  attempts.activity = &activity;
  if (request->operation == Operation::kPut) {
    attempts.cancelled = &told_to_end;
    std::signal(SIGTERM, [](int) { told_to_end = true; });
  }
  // A folder is no store: its list takes as long as its disk does.
  if (request->place.kind != spec::StoreKind::kLocal) {
    std::thread watch = base::StartThread([&] { WatchSilence(activity, *request, answer); });
    if (watch.joinable()) watch.detach();
  }
  answer.End(ServeRequest(**store, *request, attempts,
                          [&](const AnswerLine& line) { answer.Write(line); }));
}

// The request is read all the same, so that who writes it hears the answer.
void RefuseOldProcessor() {
  const absl::Status status = CheckProcessorForArrow();
  if (status.ok()) return;
  char request[4096];
  ssize_t got = 0;
  do {
    got = ::read(STDIN_FILENO, request, sizeof(request));
  } while (got > 0 || (got < 0 && errno == EINTR));
  const std::string line = absl::StrCat(ToJson(StorageFailure{status, ""}), "\n");
  base::WriteAll(STDOUT_FILENO, line, "the answer").IgnoreError();
  ::_exit(1);
}

// Before the initialisers of all libraries, Arrow's among them.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const refuse_old_processor)() = RefuseOldProcessor;

}  // namespace
}  // namespace tutti::storage

int main(int argc, char** argv) {
  if (argc != 1) {
    std::fprintf(stderr, "tutti-storage reads a request from standard input, without arguments\n");
    return 2;
  }
  // A core dump would have the credentials.
  const rlimit none = {};
  ::setrlimit(RLIMIT_CORE, &none);
  tutti::base::StartLogging("error");
  tutti::storage::Run();
}
