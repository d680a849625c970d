#include "platform/engine/data_wish.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NodesToLeaveOutTest : public ::testing::Test {
 protected:
  const std::vector<NodeWithRoom> all_ = {{.name = "n1", .is_whole = true, .idle_cpus = 8},
                                          {.name = "n2", .idle_cpus = 2},
                                          {.name = "n3"},
                                          {.name = "n4"},
                                          {.name = "n5"}};
};

TEST_F(NodesToLeaveOutTest, AreAllOthersWhereThoseWithTheDataHaveRoom) {
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n1"}}, 0), ElementsAre("n2", "n3", "n4", "n5"));
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n2", "n1", "n4"}, .count = 2, .cpus = 2}, 0),
              ElementsAre("n3", "n5"));
}

TEST_F(NodesToLeaveOutTest, AreNoneWhereItWouldHaveToWait) {
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n4"}}, 0), IsEmpty());
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n3"}}, 0), IsEmpty());
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n2"}, .cpus = 3}, 0), IsEmpty());
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n2"}, .cpus = 0}, 0), IsEmpty()) << "not whole";
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n1"}, .count = 2}, 0), IsEmpty());
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"g1"}}, 0), IsEmpty()) << "it is unknown";
  EXPECT_THAT(NodesToLeaveOut({}, {.nodes = {"n1"}}, 0), IsEmpty());
}

TEST_F(NodesToLeaveOutTest, ANodeThatIsJustBeingLeftHasRoomForOne) {
  DataWish wish{.nodes = {"n4"}, .being_left = {"n4"}, .cpus = 0};
  EXPECT_THAT(NodesToLeaveOut(all_, wish, 0), ElementsAre("n1", "n2", "n3", "n5"));
  EXPECT_THAT(NodesToLeaveOut(all_, wish, 1), IsEmpty());
}

TEST_F(NodesToLeaveOutTest, AreNoneWhereOthersThatWaitTakeTheRoom) {
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n1"}, .cpus = 4}, 1), SizeIs(4));
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n1"}, .cpus = 4}, 2), IsEmpty());
  EXPECT_THAT(NodesToLeaveOut(all_, {.nodes = {"n1"}, .cpus = 0}, 1), IsEmpty());
}

TEST_F(NodesToLeaveOutTest, AreNoneWhereTheirNamesDoNotFitIntoACommand) {
  std::vector<NodeWithRoom> many = {{"n1", true, 8}};
  for (int i = 0; i < 10'000; ++i) many.push_back({absl::StrCat("compute-", i), true, 8});
  EXPECT_THAT(NodesToLeaveOut(many, {.nodes = {"n1"}}, 0), IsEmpty());
  many.resize(1'000);
  EXPECT_THAT(NodesToLeaveOut(many, {.nodes = {"n1"}}, 0), SizeIs(999));
}

}  // namespace
}  // namespace tutti::engine
