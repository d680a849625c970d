// Covers: service_link.cc, launcher_calls.cc, service_delivery.cc.
#include "platform/launch/delivery/service_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/http/server/server.h"
#include "platform/launch/delivery/launcher_calls.h"
#include "spec/types/service_endpoint.h"

namespace tutti::launch {
namespace {

base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(30))); }

// A service that lets nobody go.
class ServiceLinkTest : public testing::Test {
 protected:
  ServiceLinkTest() {
    server_ = *http::Server::Start(
        {}, [this](const http::Request& r, http::Connection& c) { return Answer(r, c); });
    EXPECT_TRUE(base::WriteFileAtomic(plan_.service_file,
                                      spec::ToJson(spec::Endpoint{server_->url(), "token", ""}))
                    .ok());
  }
  size_t Connections() {
    absl::MutexLock lock(&mutex_);
    return peers_.size();
  }

 private:
  http::Response Answer(const http::Request& request, http::Connection& connection) {
    {
      absl::MutexLock lock(&mutex_);
      peers_.insert(request.peer);
    }
    if (request.method == "POST") return http::JsonResponse(R"({"acknowledged": 1})");
    if (knows_nobody_) return http::ErrorResponse(absl::NotFoundError("no such node"));
    ++waiting_;
    http::Response response;
    response.later = [](base::Deadline&) { return std::nullopt; };
    return response;
  }

 protected:
  const base::TemporaryDirectory folder_;
  const spec::LaunchPlan plan_ = [this] {
    spec::LaunchPlan plan;
    plan.allocation_id = "j.1";
    plan.directory = folder_.path();
    plan.service_file = folder_.path() / "launcher.json";
    return plan;
  }();
  std::atomic<int> waiting_ = 0;
  std::atomic<bool> knows_nobody_ = false;  // waits end at once
  absl::Mutex mutex_;
  std::set<std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<http::Server> server_;
};

TEST_F(ServiceLinkTest, CallsOfSeveralThreadsTakeTurnsOnOneConnection) {
  ServiceLink link(plan_);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 20; ++n) {
        if (i == 0) {
          EXPECT_TRUE(PostEvents(link, 0, 1, "{}", Soon()).ok());
        } else {
          EXPECT_EQ(*PostOutput(link, 0, i, "stdout", 0, "x", Soon()), 1u);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Connections(), 1u);
}

TEST_F(ServiceLinkTest, AReportBreaksAWaitOff) {
  ServiceLink link(plan_);
  std::thread waits([&] {
    const auto go = AskForGo(link, 0, absl::Hours(1), Soon());
    ASSERT_TRUE(go.ok()) << go.status();
    EXPECT_FALSE(*go);
  });
  base::AwaitPatiently(absl::Seconds(30), [&] { return waiting_ == 1; });
  EXPECT_TRUE(PostEvents(link, 0, 1, "{}", Soon()).ok());
  waits.join();
  EXPECT_EQ(Connections(), 2u);
}

TEST_F(ServiceLinkTest, AWaitThatEndsWhileItIsBrokenOffLeavesNothingBroken) {
  knows_nobody_ = true;
  ServiceLink link(plan_);
  std::atomic<bool> over = false;
  std::thread waits([&] {
    while (!over) AskForGo(link, 0, absl::ZeroDuration(), Soon()).IgnoreError();
  });
  absl::Status posted;
  for (int i = 0; i < 5000 && posted.ok(); ++i) {
    posted = PostEvents(link, 0, 1, "{}", Soon()).status();
  }
  over = true;
  waits.join();
  EXPECT_TRUE(posted.ok()) << posted;
}

TEST_F(ServiceLinkTest, AbandonEndsAWaitAndAllWhoWouldBeNext) {
  ServiceLink link(plan_);
  std::thread waits(
      [&] { EXPECT_TRUE(absl::IsCancelled(AskForGo(link, 0, absl::Hours(1), Soon()).status())); });
  base::AwaitPatiently(absl::Seconds(30), [&] { return waiting_ == 1; });
  link.Abandon();
  waits.join();
  EXPECT_TRUE(absl::IsCancelled(PostEvents(link, 0, 1, "{}", Soon()).status()));
}

}  // namespace
}  // namespace tutti::launch
