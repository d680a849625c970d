#include "platform/service/admission/store_inquiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/test_patience.h"

namespace tutti::service {
namespace {

using storage::StorageRequest;
using storage::StorageResult;

StorageRequest At(const std::string& server, const std::string& path) {
  StorageRequest request;
  request.place = {
      .kind = spec::StoreKind::kS3, .container = "b", .endpoint = server, .path = path};
  return request;
}

base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(20))); }

TEST(AskStores, AsksOthersWhileOneDoesNotAnswer) {
  std::vector<StorageRequest> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(At("http://dead", absl::StrCat(i)));
  for (int i = 0; i < 40; ++i) requests.push_back(At("http://fine", absl::StrCat(i)));
  absl::Mutex mutex;
  int answered = 0, waiting = 0, most = 0;
  const auto all_fine = [&] { return answered == 40; };
  const auto answers =
      AskStores(requests, Soon(), [&](const StorageRequest& request, auto&&) -> StoreAnswer {
        absl::MutexLock lock(&mutex);
        if (request.place.endpoint == "http://fine") {
          ++answered;
          return StorageResult{.bytes = answered};
        }
        most = std::max(most, ++waiting);
        // As a server that is away for as long as anybody asks another one.
        const bool in_time =
            mutex.AwaitWithTimeout(absl::Condition(&all_fine), base::Patient(absl::Seconds(10)));
        --waiting;
        if (!in_time) return absl::InternalError("the others wait");
        return absl::UnavailableError("away");
      });
  ASSERT_EQ(answers.size(), 80u);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(absl::IsUnavailable(answers[i].status())) << i;
  for (int i = 40; i < 80; ++i) EXPECT_GT(answers[i]->bytes, 0) << i;
  EXPECT_LE(most, 4) << "of one server";
}

TEST(AskStores, AsksAQuestionOnce) {
  const std::vector<StorageRequest> requests = {At("http://h", "a"), At("http://h", "b"),
                                                At("http://h", "a")};
  absl::Mutex mutex;
  std::multiset<std::string> asked;
  const auto answers =
      AskStores(requests, Soon(), [&](const StorageRequest& request, auto&&) -> StoreAnswer {
        absl::MutexLock lock(&mutex);
        asked.insert(request.place.path);
        return absl::NotFoundError(request.place.path);
      });
  EXPECT_THAT(asked, testing::ElementsAre("a", "b"));
  EXPECT_EQ(answers[0].status().message(), "a");
  EXPECT_EQ(answers[1].status().message(), "b");
  EXPECT_EQ(answers[2].status().message(), "a");
}

TEST(AskStores, AsksNoMoreOnceTheTimeIsOver) {
  int asked = 0;
  const auto answers =
      AskStores({At("http://h", "a")}, base::Deadline::After(absl::ZeroDuration()),
                [&](const StorageRequest&, auto&&) { return ++asked, StorageResult(); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(answers[0].status()));
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace tutti::service
