// Tests how a request fails on the client's side. Covers: client.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/time/clock.h"
#include "base/failing_reads_for_tests.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "http/client/client.h"
#include "http/server/server.h"

namespace tutti::http {
namespace {

using ::testing::HasSubstr;

// A file system of the user's own program may answer so.
TEST(ClientBody, ABodyThatCannotBeReadIsAnErrorAtOnceAndIsSentByTheNextCall) {
  const base::TemporaryDirectory folder("client");
  const auto file = folder.path() / "model.pt";
  ASSERT_TRUE(base::WriteFileAtomic(file, "weights").ok());
  std::atomic<int> whole = 0;
  ServerOptions options;
  options.idle_timeout = base::Patient(absl::Minutes(2));  // it waits so long for the rest
  auto server = Server::Start(options, [&](const Request&, Connection& connection) {
    const auto body = connection.ReadBody();
    whole += body.ok() && *body == "weights";
    return body.ok() ? JsonResponse("{}") : ErrorResponse(body.status());
  });
  ASSERT_TRUE(server.ok()) << server.status();
  Client client((*server)->url(), "");
  ClientRequest request;
  request.method = "POST";
  request.target = "/";
  request.body_file = file;
  request.timeout = base::Patient(absl::Minutes(1));
  const absl::Time began = absl::Now();
  base::failing_reads = 1;
  const auto failed = client.Send(request);
  base::failing_reads = 0;
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kUnavailable) << failed.status();
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("model.pt"));
  EXPECT_LT(absl::Now() - began, base::Patient(absl::Seconds(20)));
  const auto again = client.Send(request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->status, 200);
  EXPECT_EQ(whole, 1);
}

}  // namespace
}  // namespace tutti::http
