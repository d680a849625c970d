#include "platform/service/attempt/free_port.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::service {
namespace {

constexpr char kAddress[] = "127.77.3.7";  // which no node of another test has

// One that no other process of these tests prefers.
int Preferred() { return 6000 + ::getpid() % 3000; }

TEST(FreePort, IsTheOneThatIsPreferred) {
  EXPECT_EQ(FindFreePort(kAddress, Preferred()).port, Preferred());
  EXPECT_EQ(FindFreePort(kAddress, Preferred()).port, Preferred()) << "the first has let go of it";
}

TEST(FreePort, IsNotFoundTwiceWhileItIsClaimed) {
  const FreePort first = FindFreePort(kAddress, Preferred());
  const FreePort second = FindFreePort(kAddress, Preferred());
  EXPECT_NE(first.port, second.port);
  EXPECT_GE(second.port, 10000) << "the system gives none of these to a connection";
  EXPECT_LE(second.port, 31999);
  ASSERT_NE(second.claim, nullptr);
  EXPECT_EQ(FindFreePort("127.77.3.8", Preferred()).port, Preferred())
      << "a claim is for one address";
}

TEST(FreePort, IsNotOneThatAProgramListensTo) {
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  ASSERT_EQ(::inet_pton(AF_INET, kAddress, &where.sin_addr), 1);
  socklen_t size = sizeof(where);
  auto* const generic = reinterpret_cast<sockaddr*>(&where);
  ASSERT_EQ(::bind(listener.get(), generic, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &size), 0);
  const int taken = ntohs(where.sin_port);
  EXPECT_NE(FindFreePort(kAddress, taken).port, taken);
}

TEST(FreePort, OfAnotherMachineIsTheOneThatIsPreferred) {
  const FreePort found = FindFreePort("192.0.2.1", 6105);  // RFC 5737: nobody's
  EXPECT_EQ(found.port, 6105);
  EXPECT_EQ(found.claim, nullptr);
}

}  // namespace
}  // namespace tutti::service
