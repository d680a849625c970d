// Tests what needs no server; tests/storage/test_nfs_stores.py reads from one.
#include "platform/storage/nfs/nfs_store.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "platform/storage/nfs/nfs_connections.h"

namespace tutti::storage {
namespace {

using ::testing::HasSubstr;

// SilentPort is a port of this machine at which nobody listens as long as it is held.
class SilentPort {
 public:
  SilentPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  int port() const { return port_; }

 private:
  base::UniqueFd socket_;
  int port_ = 0;
};

spec::DataPlace PlaceAt(const std::string& endpoint) {
  spec::DataPlace place{.kind = spec::StoreKind::kNfs};
  place.container = "images";
  place.endpoint = endpoint;
  return place;
}

TEST(NfsStore, AServerThatIsAwayIsToBeTriedAgain) {
  const SilentPort port;
  const auto store = OpenNfsStore(PlaceAt(absl::StrCat("nfs://127.0.0.1:", port.port())));
  ASSERT_TRUE(store.ok()) << store.status();
  for (const absl::Status& status :
       {(*store)->KindOf("").status(), (*store)->List("", true).status(),
        (*store)->Open("a").status()}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr(absl::StrCat("127.0.0.1:", port.port(), " does not answer (mount /images")));
  }
}

TEST(NfsStore, IsReadAlone) {
  const auto store = OpenNfsStore(PlaceAt("nfs://127.0.0.1"));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(absl::IsUnimplemented((*store)->Put("a", "/dev/null", {})));
  EXPECT_TRUE(absl::IsUnimplemented((*store)->Remove("a")));
  EXPECT_TRUE(absl::IsUnimplemented((*store)->RemoveFolder("a")));
}

TEST(NfsStore, RefusesWhatIsNoServer) {
  for (const char* endpoint : {"", "nfs://", "nfs://a:0", "nfs://a/b", "nfs://a b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(OpenNfsStore(PlaceAt(endpoint)).status())) << endpoint;
  }
}

TEST(NfsStatus, TellsWhatMayPassFromWhatStays) {
  EXPECT_TRUE(absl::IsNotFound(NfsStatus(-ENOENT, "open it")));
  EXPECT_TRUE(absl::IsPermissionDenied(NfsStatus(-EACCES, "open it")));
  EXPECT_TRUE(absl::IsAborted(NfsStatus(-ESTALE, "open it")));
  for (const int error : {EIO, EINTR, ETIMEDOUT, ECONNREFUSED, ENOMEM, EFAULT}) {
    EXPECT_TRUE(absl::IsUnavailable(NfsStatus(-error, "open it"))) << error;
  }
}

}  // namespace
}  // namespace tutti::storage
