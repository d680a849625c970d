#include "platform/client/jobs/wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "platform/client/connection/connection_fake.h"
#include "platform/client/connection/outage.h"

namespace tutti::client {
namespace {

using testing::HasSubstr;

constexpr char kRunning[] = R"({"id": "j", "state": "Running"})";
constexpr char kCompleted[] = R"({"id": "j", "state": "Completed"})";

WaitOptions Quick() {
  WaitOptions options;
  options.first_pause = options.longest_pause = absl::Milliseconds(1);
  return options;
}

TEST(WaitForEnd, LooksForTheServiceAnewOnceItIsAway) {
  int answers = 0;
  FakeService service([&](const http::ClientRequest&) -> FakeService::Answer {
    switch (answers++) {
      case 0:
        return {.chunks = {kRunning}};
      case 1:
        return {.then = absl::UnavailableError("refused")};
      case 2:  // another home's service on the port of this one
        return {.status = 401};
      default:
        return {.chunks = {kCompleted}};
    }
  });
  int connections = 0;
  const Connect connect = [&, inner = service.connect()] {
    ++connections;
    return inner();
  };
  const auto ended = WaitForEnd(connect, "j", Quick());
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(connections, 3);
}

TEST(WaitForEnd, GivesUpAfterTheStatedTimeWithTheReason) {
  FakeService service([](const http::ClientRequest&) -> FakeService::Answer {
    return {.then = absl::UnavailableError("refused")};
  });
  WaitOptions options = Quick();
  options.give_up_after = absl::Milliseconds(20);
  const auto ended = WaitForEnd(service.connect(), "j", options);
  EXPECT_TRUE(absl::IsUnavailable(ended.status()));
  EXPECT_THAT(ended.status().message(), HasSubstr("did not come back within 20ms: refused"));
}

TEST(WaitForEnd, AnErrorThatStaysEndsIt) {
  FakeService service(
      [](const http::ClientRequest&) -> FakeService::Answer { return {.status = 404}; });
  EXPECT_TRUE(absl::IsNotFound(WaitForEnd(service.connect(), "j", Quick()).status()));
}

TEST(WaitForEnd, TheDeadlineIsToldApartFromAServiceThatIsAway) {
  FakeService service(
      [](const http::ClientRequest&) -> FakeService::Answer { return {.chunks = {kRunning}}; });
  WaitOptions options = Quick();
  options.deadline = base::Deadline::After(absl::Milliseconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(WaitForEnd(service.connect(), "j", options).status()));
}

TEST(ResolveOnceThere, WaitsForAServiceThatIsAwayAndSaysSoOnce) {
  int answers = 0;
  FakeService service([&](const http::ClientRequest&) -> FakeService::Answer {
    if (answers++ < 3) return {.then = absl::UnavailableError("refused")};
    return {.chunks = {kRunning}};
  });
  std::ostringstream said;
  const auto id = ResolveOnceThere(service.connect(), "j", Quick(), said);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id, "j");
  EXPECT_EQ(said.str(), "the service is away (refused): waiting for it\n");
}

TEST(ResolveOnceThere, ANameThatThereIsNotOrTheDeadlineEndsIt) {
  FakeService unknown(
      [](const http::ClientRequest&) -> FakeService::Answer { return {.status = 404}; });
  std::ostringstream said;
  EXPECT_FALSE(ResolveOnceThere(unknown.connect(), "j", Quick(), said).ok());
  EXPECT_EQ(said.str(), "");
  FakeService away([](const http::ClientRequest&) -> FakeService::Answer {
    return {.then = absl::UnavailableError("refused")};
  });
  WaitOptions options = Quick();
  options.deadline = base::Deadline::After(absl::Milliseconds(5));
  EXPECT_TRUE(absl::IsUnavailable(ResolveOnceThere(away.connect(), "j", options, said).status()));
}

TEST(ResolveOnceThere, AServiceThatWasNeverThereIsNotWaitedFor) {
  int answers = 0;
  FakeService service([&](const http::ClientRequest&) -> FakeService::Answer {
    if (answers++ == 0) return {.then = NeverThere(absl::UnavailableError("no such host"))};
    return {.chunks = {kRunning}};
  });
  std::ostringstream said;
  const auto id = ResolveOnceThere(service.connect(), "j", Quick(), said);
  EXPECT_TRUE(absl::IsUnavailable(id.status())) << id.status();
  EXPECT_EQ(said.str(), "");
  EXPECT_EQ(answers, 1);
}

TEST(ResolveOnceThere, AServiceThatWasAwayIsWaitedForWhereItsHostIsLost) {
  int answers = 0;
  FakeService service([&](const http::ClientRequest&) -> FakeService::Answer {
    const absl::Status away = absl::UnavailableError("refused");
    if (answers++ < 2) return {.then = answers == 1 ? away : NeverThere(away)};
    return {.chunks = {kRunning}};
  });
  std::ostringstream said;
  EXPECT_TRUE(ResolveOnceThere(service.connect(), "j", Quick(), said).ok());
}

}  // namespace
}  // namespace tutti::client
