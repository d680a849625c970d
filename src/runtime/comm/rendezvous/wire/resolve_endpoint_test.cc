// Names through a resolver that this test makes up.
#include "runtime/comm/rendezvous/wire/resolve_endpoint.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "absl/strings/string_view.h"
#include "base/test_patience.h"
#include "runtime/comm/rendezvous/patience_test_support.h"

namespace {

// Names under "lookup.test" are this test's, whichever thread asks.
struct NameServer {
  std::mutex mutex;
  std::condition_variable changed;
  bool silent = false;
  int asked = 0, answered = 0;

  void Answer(absl::string_view name) {
    std::unique_lock lock(mutex);
    ++asked;
    changed.notify_all();
    if (name == "silent.lookup.test") changed.wait(lock, [this] { return !silent; });
    ++answered;
    changed.notify_all();
  }
  void SetSilent(bool is) {
    const std::lock_guard lock(mutex);
    silent = is;
    changed.notify_all();
  }
  void AwaitAllAnswered() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return asked == answered; });
  }
};

NameServer& TheNameServer() {
  static NameServer* const server = new NameServer();
  return *server;
}

using GetAddrInfo = int(const char*, const char*, const addrinfo*, addrinfo**);

}  // namespace

// In the place of the C library's.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  static auto* const genuine = reinterpret_cast<GetAddrInfo*>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const absl::string_view host = name == nullptr ? "" : name;
  const bool numeric = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (numeric || host.find(".lookup.test") == absl::string_view::npos) {
    return genuine(name, service, hints, list);
  }
  TheNameServer().Answer(host);
  if (host == "unknown.lookup.test") return EAI_NONAME;
  int error = genuine("127.77.9.1", service, hints, list);
  if (error == 0 && host == "two.lookup.test") {
    error = genuine("127.77.9.2", service, hints, &(*list)->ai_next);
  }
  return error;
}

namespace tutti::comm {
namespace {

TEST(ResolveTest, ANumericAddressIsTakenThoughThereIsNoTime) {
  for (const char* const host : {"127.0.0.1", "::1"}) {
    const auto addresses = Resolve({host, 80}, "", Within(absl::ZeroDuration()));
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    EXPECT_EQ(addresses->size(), 1u);
  }
}

TEST(ResolveTest, AllAddressesOfANameAreFound) {
  const auto addresses =
      Resolve({"two.lookup.test", 80}, "", Within(base::Patient(absl::Seconds(10))));
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  EXPECT_EQ(addresses->size(), 2u);
}

TEST(ResolveTest, AnUnknownNameIsSaid) {
  const auto status =
      Resolve({"unknown.lookup.test", 80}, "", Within(base::Patient(absl::Seconds(10)))).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("unknown.lookup.test"), absl::string_view::npos) << status;
}

TEST(ResolveTest, ASilentNameServerIsLeftAtTheDeadline) {
  TheNameServer().SetSilent(true);
  const auto status =
      Connect({"silent.lookup.test", 80}, "", Within(absl::Milliseconds(50))).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("silent.lookup.test"), absl::string_view::npos) << status;
  TheNameServer().SetSilent(false);
  TheNameServer().AwaitAllAnswered();
}

TEST(ResolveTest, AnAddressThatRefusesIsFollowedByTheNext) {
  const auto listener = Listen({"127.77.9.2", 0});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto socket = Connect({"two.lookup.test", *PortOf(listener->get())}, "",
                              Within(base::Patient(absl::Seconds(10))));
  EXPECT_TRUE(socket.ok()) << socket.status();
}

TEST(ResolveTest, AnAddressThatIsTakenIsFollowedByTheNext) {
  const auto taken = Listen({"127.77.9.1", 0});
  ASSERT_TRUE(taken.ok()) << taken.status();
  const auto listener = Listen({"two.lookup.test", *PortOf(taken->get())});
  EXPECT_TRUE(listener.ok()) << listener.status();
}

}  // namespace
}  // namespace tutti::comm
