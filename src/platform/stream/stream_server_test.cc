#include "platform/stream/stream_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/storage/objects/memory_store_fake.h"

namespace tutti::stream {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Client is a process that reads.
class Client {
 public:
  // Waits until somebody listens there.
  explicit Client(const fs::path& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const base::Deadline end = base::Deadline::After(base::Patient(absl::Seconds(30)));
    do {
      socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      is_connected_ =
          ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    } while (!is_connected_ && !end.Expired());
    EXPECT_TRUE(is_connected_);
  }
  void Say(absl::string_view text) {
    EXPECT_TRUE(base::WriteAll(socket_.get(), text, "a server").ok());
  }
  // Returns the next line; "" at the end.
  std::string Line() {
    while (rest_.find('\n') == std::string::npos) {
      char buffer[4096];
      const ssize_t n = ::read(socket_.get(), buffer, sizeof(buffer));
      if (n <= 0) return "";
      rest_.append(buffer, static_cast<size_t>(n));
    }
    const std::string line = rest_.substr(0, rest_.find('\n'));
    rest_.erase(0, line.size() + 1);
    return line;
  }
  std::string Ask(absl::string_view text) {
    Say(text);
    return Line();
  }

 private:
  base::UniqueFd socket_;
  bool is_connected_ = false;
  std::string rest_;
};

class StreamServerTest : public ::testing::Test {
 protected:
  StreamServerTest() {
    for (const char* name : {"a", "b b"}) store_.Set(absl::StrCat("set/", name), name, 1000);
    options_.socket = folder_.path() / "socket";
    options_.linger = base::PatientTimeout(absl::Milliseconds(500));
  }
  ~StreamServerTest() override { AwaitEnd(); }

  absl::StatusOr<std::unique_ptr<StreamedObjects>> Open() {
    if (!failure_.ok()) return failure_;
    TUTTI_ASSIGN_OR_RETURN(
        auto survey, storage::SurveyPlace(store_, {spec::StoreKind::kS3, "", "b", "", "", "set"},
                                          storage::PlaceType::kAny, {}));
    StreamOptions options{.folder = folder_.path() / "streamed", .most_bytes = 1 << 20};
    options.settled_before = 2000;
    return std::make_unique<StreamedObjects>(store_, std::move(survey), std::move(options));
  }
  void Start() {
    server_ = std::thread(
        [this] { served_ = Serve(options_, [this](const GiveUp&) { return Open(); }); });
  }
  void AwaitEnd() {
    if (server_.joinable()) server_.join();
  }

  storage::MemoryStore store_;
  const base::TemporaryDirectory folder_;
  ServerOptions options_;
  absl::Status failure_, served_;
  std::thread server_;
};

TEST_F(StreamServerTest, ListsObjectsAndGivesThem) {
  Start();
  {
    Client client(options_.socket);
    EXPECT_EQ(client.Line(), "stream 1 1048576");
    EXPECT_EQ(client.Ask("list\n"), "object 1 a");
    EXPECT_EQ(client.Line(), "object 3 b b");
    EXPECT_EQ(client.Line(), "end");
    client.Say("next a\nnext b b\nahead\n");
    const std::string file = client.Ask("get b b\n");
    ASSERT_THAT(file, StartsWith("file /"));
    EXPECT_EQ(base::ReadFile(file.substr(5)).value_or("?"), "b b");
    EXPECT_THAT(client.Ask("drop b b\nget c\n"), StartsWith("error not_found "));
    EXPECT_THAT(client.Ask("sing\n"), StartsWith("error usage "));
  }
  AwaitEnd();
  EXPECT_TRUE(served_.ok()) << served_;
  std::error_code error;
  EXPECT_FALSE(fs::exists(options_.socket, error));
}

TEST_F(StreamServerTest, ASecondOneAtTheSameSocketEndsAtOnce) {
  Start();
  Client client(options_.socket);
  EXPECT_THAT(client.Line(), StartsWith("stream 1 "));
  EXPECT_TRUE(Serve(options_, [this](const GiveUp&) { return Open(); }).ok());
  EXPECT_EQ(client.Ask("list\n"), "object 1 a") << "the first one goes on";
}

// The store is silent: its opener hangs, and the process is about to be ended.
TEST_F(StreamServerTest, TellsThoseWhoWaitWhyWhatIsServedIsGivenUpOnlyWhileItIsOpened) {
  absl::Notification opens, opened;
  GiveUp give_up;
  server_ = std::thread([&] {
    served_ = Serve(options_, [&](const GiveUp& gives_up) {
      give_up = gives_up;
      opens.Notify();
      opened.WaitForNotification();
      return Open();
    });
  });
  opens.WaitForNotification();
  {
    Client waits(options_.socket);
    std::thread ends([&] { give_up(absl::UnavailableError("the store is silent")); });
    EXPECT_EQ(waits.Line(), "error network the store is silent");
    ends.join();
  }
  opened.Notify();
  Client next(options_.socket);
  EXPECT_THAT(next.Line(), StartsWith("stream 1 "));
  give_up(absl::UnavailableError("the store is silent"));
  EXPECT_EQ(next.Ask("list\n"), "object 1 a");
}

TEST_F(StreamServerTest, TellsEachWhoConnectsWhyThereIsNothing) {
  failure_ = absl::PermissionDeniedError("the store\ndoes not take the key");
  options_.tell = [](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("bucket \"b\": ", status.message()));
  };
  Start();
  EXPECT_EQ(Client(options_.socket).Line(),
            "error credentials bucket \"b\": the store does not take the key");
  AwaitEnd();
  EXPECT_TRUE(absl::IsPermissionDenied(served_)) << served_;
}

TEST_F(StreamServerTest, AReaderThatSendsNoLineIsCutOff) {
  Start();
  Client client(options_.socket);
  client.Line();
  client.Say(std::string(20000, 'x'));
  EXPECT_EQ(client.Line(), "");
}

TEST_F(StreamServerTest, ASocketsPathThatIsTooLongIsNamed) {
  options_.socket = folder_.path() / std::string(120, 'x');
  const absl::Status served = Serve(options_, [this](const GiveUp&) { return Open(); });
  EXPECT_THAT(std::string(served.message()), HasSubstr("more than 107 bytes"));
}

}  // namespace
}  // namespace tutti::stream
