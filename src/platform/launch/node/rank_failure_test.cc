#include "platform/launch/node/rank_failure.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tutti::launch {
namespace {

using nlohmann::json;

TEST(RankFailure, IsReportedWithItsRankApartFromWhatItDid) {
  const absl::Status left = RankFailure(absl::StatusCode::kInternal, 12, "left MPI");
  EXPECT_EQ(left.message(), "rank 12 left MPI");
  EXPECT_EQ(EndOf(left), (json{{"ok", false}, {"reason", "left MPI"}, {"rank", 12}}));
  EXPECT_EQ(EndOf(WithMore(left, "process 7 does not end")),
            (json{{"ok", false}, {"reason", "left MPI; process 7 does not end"}, {"rank", 12}}));
}

TEST(RankFailure, OtherFailuresAreOfNoRankWhateverTheySay) {
  EXPECT_EQ(EndOf(absl::InternalError("rank 0 could not be started")),
            (json{{"ok", false}, {"reason", "rank 0 could not be started"}}));
  EXPECT_EQ(EndOf(absl::OkStatus()), (json{{"ok", true}, {"reason", ""}}));
}

}  // namespace
}  // namespace tutti::launch
