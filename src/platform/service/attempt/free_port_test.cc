#include "platform/service/attempt/free_port.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tutti::service {
namespace {

constexpr char kAddress[] = "127.77.3.7";  // which no node of another test has

TEST(FreePort, IsTheOneThatIsPreferred) {
  EXPECT_EQ(FindFreePort(kAddress, 6105).port, 6105);
  EXPECT_EQ(FindFreePort(kAddress, 6105).port, 6105) << "the first has let go of it";
}

TEST(FreePort, IsNotFoundTwiceWhileItIsClaimed) {
  const FreePort first = FindFreePort(kAddress, 6105);
  const FreePort second = FindFreePort(kAddress, 6105);
  EXPECT_NE(first.port, second.port);
  EXPECT_GE(second.port, 10000) << "the system gives none of these to a connection";
  EXPECT_LE(second.port, 31999);
  ASSERT_NE(second.claim, nullptr);
  EXPECT_EQ(FindFreePort("127.77.3.8", 6105).port, 6105) << "a claim is for one address";
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
