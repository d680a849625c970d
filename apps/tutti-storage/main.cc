// The program `tutti-storage`: moves objects between a store and a folder. It reads one request
// from standard input and answers in lines of JSON (docs/formats/storage-program.md); service and
// launcher run it (src/platform/storage/storage_program.h). As `tutti-storage stream` it serves the
// objects of a place to the readers of this machine instead (docs/formats/stream.md). A signal ends
// it at once, but for a put, which gives back first what the store has begun to take; the same
// request goes on where it was.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "base/status.h"
#include "base/threads/start_thread.h"
#include "platform/storage/arrow/arrow_processor.h"
#include "platform/storage/arrow/arrow_store.h"
#include "platform/storage/azure_files/files_store.h"
#include "platform/storage/nfs/nfs_store.h"
#include "platform/storage/storage_json.h"
#include "platform/storage/transfer/activity.h"
#include "platform/storage/transfer/serve_request.h"
#include "platform/stream/renewed_store.h"
#include "platform/stream/service_grant.h"
#include "platform/stream/stream_cache.h"
#include "platform/stream/stream_request.h"
#include "platform/stream/stream_server.h"

namespace tutti::storage {
namespace {

// How long nothing may happen. The libraries have limits of their own, but not for each case.
constexpr absl::Duration kLongestSilence = absl::Minutes(10);
constexpr char kSilent[] = "the store has not answered for 10 minutes";
constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr absl::Duration kPatienceWithService = absl::Minutes(1);
// These hold for what is streamed: a training waits for it, and has nobody else to ask.
constexpr int kStreamConnections = 32, kStreamTries = 12;

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

// Calls `end`, which does not return, once the store of the place has been silent for so long. A
// folder is no store: its list takes as long as its disk does.
void WatchSilence(const Activity& activity, const spec::DataPlace& place,
                  std::function<void()> end) {
  if (place.kind == spec::StoreKind::kLocal) return;
  std::thread thread = base::StartThread([&activity, end = std::move(end)] {
    SilenceWatch watch(activity, base::SteadyNow());
    while (watch.Look(BytesOfConnections(), base::SteadyNow()) < kLongestSilence) {
      absl::SleepFor(kBetweenLooks);
    }
    end();
  });
  if (thread.joinable()) thread.detach();
}

absl::StatusOr<std::unique_ptr<ObjectStore>> OpenStore(const StorageRequest& request,
                                                       int connections) {
  switch (request.place.kind) {
    case spec::StoreKind::kAzureFile:
      return OpenFilesStore(request.place, request.credentials);
    case spec::StoreKind::kNfs:
      return OpenNfsStore(request.place);
    default:
      return OpenArrowStore(request.place, request.credentials, connections);
  }
}

[[noreturn]] void Run() {
  Answer answer;
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const absl::StatusOr<StorageRequest> request = StorageRequestFromJson(text);
  if (!request.ok()) answer.End(StorageFailure{request.status(), ""});
  const auto store = OpenStore(*request, request->connections);
  if (!store.ok()) answer.End(FailureOf(store.status(), *request));
  Activity activity;
  Attempts attempts;
  attempts.activity = &activity;
  if (request->operation == Operation::kPut) {
    attempts.cancelled = &told_to_end;
    std::signal(SIGTERM, [](int) { told_to_end = true; });
  }
  WatchSilence(activity, request->place,
               [&] { answer.End(FailureOf(absl::UnavailableError(kSilent), *request)); });
  answer.End(ServeRequest(**store, *request, attempts,
                          [&](const AnswerLine& line) { answer.Write(line); }));
}

absl::StatusOr<StorageRequest> PlaceToStream(const stream::StreamRequest& asked) {
  if (asked.address != "-")
    return stream::RequestOfAddress(asked.address, base::CurrentEnvironment());
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  // It is a file in memory, which would have the credentials as long as this program runs.
  if (::ftruncate(STDIN_FILENO, 0) != 0) ::close(STDIN_FILENO);
  return StorageRequestFromJson(text);
}

// Opens a datastore by what the service grants its user, and again before that ends; the first time
// sets the request.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenGranted(const std::string& address,
                                                         absl::StatusOr<StorageRequest>& request) {
  const auto open = [&request, address,
                     program = stream::ClientProgram()]() -> absl::StatusOr<stream::GrantedStore> {
    TUTTI_ASSIGN_OR_RETURN(
        const Grant grant,
        stream::AskForGrant(address, program, base::Deadline::After(kPatienceWithService)));
    StorageRequest granted;
    granted.operation = Operation::kList;
    granted.place = grant.place;
    granted.place.credential = grant.credentials.kind;
    granted.credentials = grant.credentials;
    if (request.ok() && spec::StoreOf(request->place) != spec::StoreOf(granted.place)) {
      return absl::FailedPreconditionError(
          absl::StrCat(address, " was replaced by another store while it was read: begin again"));
    }
    TUTTI_ASSIGN_OR_RETURN(std::shared_ptr<ObjectStore> store,
                           OpenStore(granted, kStreamConnections));
    if (!request.ok()) request = std::move(granted);
    const absl::Time expires =
        grant.expires == 0 ? absl::InfiniteFuture() : absl::FromUnixSeconds(grant.expires);
    return stream::GrantedStore{std::move(store), expires};
  };
  return stream::RenewedStore::Make(open, absl::Now);
}

// Serves until nobody reads any more. Threads of the providers' libraries may still run then.
[[noreturn]] void Stream(const std::vector<std::string>& arguments) {
  const auto asked = stream::ParseStreamRequest(arguments);
  if (!asked.ok()) {
    std::fprintf(stderr, "tutti-storage: %s\n", std::string(asked.status().message()).c_str());
    ::_exit(2);
  }
  const bool is_granted = absl::StartsWith(asked->address, "azureml:");
  absl::StatusOr<StorageRequest> request = absl::UnavailableError("the service was not asked yet");
  if (!is_granted) request = PlaceToStream(*asked);
  stream::ServerOptions options{.socket = asked->socket};
  options.tell = [&](const absl::Status& status) {
    return request.ok() ? FailureOf(status, *request).status : status;
  };
  std::unique_ptr<ObjectStore> store;
  stream::OpenedStream opened;
  Activity activity;
  Attempts attempts{.most = kStreamTries};
  attempts.activity = &activity;
  using Opened = absl::StatusOr<std::unique_ptr<stream::StreamedObjects>>;
  const absl::Status served = stream::Serve(options, [&](const stream::GiveUp& give_up) -> Opened {
    if (is_granted) {
      TUTTI_ASSIGN_OR_RETURN(store, OpenGranted(asked->address, request));
    }
    if (!request.ok()) return request.status();
    // Readers start another program, which has connections of its own. Who waits for the list
    // is told: it would wait as long for the next one's.
    WatchSilence(activity, request->place, [&give_up] {
      give_up(absl::UnavailableError(kSilent));
      ::_exit(1);
    });
    if (!is_granted) {
      TUTTI_ASSIGN_OR_RETURN(store, OpenStore(*request, kStreamConnections));
    }
    TUTTI_ASSIGN_OR_RETURN(opened, stream::OpenStream(*store, *request, *asked, attempts));
    return std::move(opened.objects);
  });
  ::_exit(served.ok() ? 0 : 1);
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
  const bool is_stream = argc > 1 && std::string(argv[1]) == "stream";
  if (argc != 1 && !is_stream) {
    std::fprintf(stderr,
                 "tutti-storage reads a request from standard input, without arguments, or "
                 "serves a place: tutti-storage stream ADDRESS --socket FILE --cache FOLDER\n");
    return 2;
  }
  // A store, or who reads the answer, may close what is written to: that is an error of the write.
  std::signal(SIGPIPE, SIG_IGN);
  // A core dump would have the credentials.
  const rlimit none = {};
  ::setrlimit(RLIMIT_CORE, &none);
  // So would /proc, for as long as a job runs, whose processes are of the same user.
  if (is_stream) ::prctl(PR_SET_DUMPABLE, 0);
  tutti::base::StartLogging("error");
  if (is_stream) tutti::storage::Stream({argv + 2, argv + argc});
  tutti::storage::Run();
}
