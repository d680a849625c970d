// Covers: service_link.cc, launcher_calls.cc, service_delivery.cc, patience.h.
#include "platform/launch/delivery/service_link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "http/server/server.h"
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
    const int status = refuses_with_;
    if (status != 0) return http::ErrorResponse(status, is_proxy_ ? "" : "unavailable", "no room");
    if (request.method == "POST" && !absl::EndsWith(request.path, "/usage"))
      return http::JsonResponse(R"({"acknowledged": 1})");
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
  std::atomic<int> refuses_with_ = 0;       // a status of HTTP for all
  std::atomic<bool> is_proxy_ = false;      // which refuses
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

TEST_F(ServiceLinkTest, OnlyTheServicesOwn503PutsOffWhatIsSentAndNothingElse) {
  ServiceLink link(plan_);
  const auto once = [] { return base::Deadline::After(absl::ZeroDuration()); };
  const auto send = [&](int status, bool is_proxy) {
    refuses_with_ = status;
    is_proxy_ = is_proxy;
    const auto sent = PostOutput(link, 0, 0, "stdout", 0, "x", once());
    EXPECT_EQ(sent.ok(), status == 0) << sent.status();
  };
  const absl::Duration before = base::SteadyNow();
  for (const int status : {500, 429}) send(status, /*is_proxy=*/false);
  send(503, /*is_proxy=*/true);
  AskForGo(link, 0, absl::ZeroDuration(), once()).IgnoreError();
  EXPECT_LT(link.put_off(Urgency::kOutput), before);
  send(503, /*is_proxy=*/false);
  const absl::Duration put_off = link.put_off(Urgency::kOutput);
  EXPECT_GE(put_off, before);
  EXPECT_LT(link.put_off(Urgency::kEvents), before) << "which were not";
  AskForGo(link, 0, absl::ZeroDuration(), once()).IgnoreError();
  EXPECT_EQ(link.put_off(Urgency::kOutput), put_off) << "nothing was sent";
}

TEST_F(ServiceLinkTest, WhatIsPutOffIsSentBeyondTheLimitAndNoLongerOnceItIsNot) {
  ServiceLink link(plan_);
  const absl::Duration limit = absl::Seconds(2);
  http::ClientRequest request;
  request.method = "POST";
  request.target = link.Target(0, "/results");
  refuses_with_ = 503;
  const base::Deadline full = base::Deadline::After(1.5 * limit);
  std::atomic<bool> is_over = false;
  std::thread sends([&] {
    EXPECT_TRUE(link.CallWithin(request, Patience::For(limit)).ok());
    is_over = true;
  });
  base::AwaitPatiently(absl::Seconds(30), [&] { return full.Expired(); });
  EXPECT_FALSE(is_over);
  refuses_with_ = 0;
  sends.join();
  refuses_with_ = 500;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      link.CallWithin(request, Patience::For(absl::Milliseconds(200))).status()));
}

TEST_F(ServiceLinkTest, EventsAndOutputBreakACallOfUsageOff) {
  ServiceLink link(plan_);
  for (int i = 0; i < 2; ++i) {
    std::thread tells([&] {
      EXPECT_TRUE(absl::IsDeadlineExceeded(PostUsage(link, 0, "{}").status())) << "is not taken";
    });
    base::AwaitPatiently(absl::Seconds(30), [&] { return waiting_ == i + 1; });
    if (i == 0) {
      EXPECT_TRUE(PostEvents(link, 0, 1, "{}", Soon()).ok());
    } else {
      EXPECT_TRUE(PostOutput(link, 0, 0, "stdout", 0, "x", Soon()).ok());
    }
    tells.join();
  }
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

TEST(Patience, OfADeadlineEndsAtItWhateverIsPutOff) {
  const Patience over = base::Deadline::After(absl::ZeroDuration());
  EXPECT_TRUE(over.EndAfter(base::SteadyNow()).Expired());
  EXPECT_TRUE(over.EndAfter(kNeverPutOff).Expired());
}

TEST(Patience, OfALimitBeginsAnewWithWhatIsPutOffAndEndsNoSoonerForIt) {
  const Patience patience = Patience::For(absl::Hours(24));
  const absl::Duration now = base::SteadyNow();
  for (const absl::Duration put_off : {kNeverPutOff, now - absl::Hours(30), now}) {
    const absl::Duration rest = patience.EndAfter(put_off).Remaining();
    EXPECT_LE(rest, absl::Hours(24));
    EXPECT_GT(rest, absl::Hours(23));
  }
  EXPECT_GT(patience.EndAfter(now + absl::Hours(30)).Remaining(), absl::Hours(53));
}

TEST(Patience, ThatIsOverGoesOnOnceSomethingIsPutOff) {
  const Patience patience = Patience::For(absl::Nanoseconds(1));
  EXPECT_TRUE(patience.EndAfter(kNeverPutOff).Expired());
  EXPECT_FALSE(patience.EndAfter(base::SteadyNow() + absl::Hours(1)).Expired());
}

}  // namespace
}  // namespace tutti::launch
