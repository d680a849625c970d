#include "platform/launch/node/rank_failure.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

TEST(RankFailure, IsReportedWithItsRankApartFromWhatItDid) {
  const absl::Status left = RankFailure(absl::StatusCode::kInternal, 12, "left MPI");
  EXPECT_EQ(left.message(), "rank 12 left MPI");
  json end = {{"ok", false}, {"reason", "left MPI"}, {"rank", 12}, {"timed_out", false}};
  EXPECT_EQ(EndOf(left), end);
  end["reason"] = "left MPI; process 7 does not end";
  EXPECT_EQ(EndOf(WithMore(left, "process 7 does not end")), end);
}

TEST(RankFailure, OtherFailuresAreOfNoRankWhateverTheySay) {
  EXPECT_EQ(EndOf(absl::InternalError("rank 0 could not be started")),
            (json{{"ok", false}, {"reason", "rank 0 could not be started"}, {"timed_out", false}}));
  EXPECT_EQ(EndOf(absl::OkStatus()), (json{{"ok", true}, {"reason", ""}}));
}

TEST(NodeIsIll, SaysByAFieldWhatIsWrongWithTheNode) {
  EXPECT_EQ(EndOf(NodeIsIll("disk: full")), (json{{"ok", false},
                                                  {"reason", "it is ill: disk: full"},
                                                  {"timed_out", false},
                                                  {"ill", "disk: full"}}));
}

TEST(SharedDiskIsFull, IsSaidOfPlacesInTheFolderThatAllNodesShareAlone) {
  const absl::Status full = base::ErrnoStatus("write /shared/j.1/0/work/x", ENOSPC);
  const json end = EndOf(BlameSharedDisk(full, "/shared"));
  EXPECT_EQ(end["shared_disk_full"], true);
  EXPECT_EQ(end["reason"],
            "the disk that all nodes share is full: write /shared/j.1/0/work/x: No space left on "
            "device");
  EXPECT_EQ(EndOf(BlameSharedDisk(BlameSharedDisk(full, "/shared"), "/shared")), end);
  EXPECT_FALSE(end.contains("filled_by_job"));
  const json own = EndOf(FilledByItsJob(BlameSharedDisk(full, "/shared"), uint64_t{95} << 30));
  EXPECT_EQ(own["shared_disk_full"], true);
  EXPECT_EQ(own["filled_by_job"], true);
  EXPECT_EQ(own["reason"],
            end["reason"].get<std::string>() + "; the job's own files took about 95.0 GiB of it");
  EXPECT_EQ(FilledByItsJob(full, 1), full);
  EXPECT_EQ(BlameSharedDisk(full, ""), full) << "each node has a disk of its own";
  EXPECT_EQ(BlameSharedDisk(full, "/other"), full);
  const absl::Status broken = base::ErrnoStatus("write /shared/j.1/0/work/x", EIO);
  EXPECT_EQ(BlameSharedDisk(broken, "/shared"), broken) << "maybe from this node alone";
}

TEST(TimeLimitReached, IsToldByAFieldAndNotByItsWords) {
  const absl::Status reached = TimeLimitReached(0.5);
  json end = {{"ok", false}, {"reason", "wall time limit of 0.5 s reached"}, {"timed_out", true}};
  EXPECT_EQ(EndOf(reached), end);
  end["reason"] = "wall time limit of 0.5 s reached; process 7 does not end";
  EXPECT_EQ(EndOf(WithMore(reached, "process 7 does not end")), end);
  EXPECT_EQ(EndOf(absl::DeadlineExceededError("an upload passed its time limit"))["timed_out"],
            false);
}

}  // namespace
}  // namespace tutti::launch
