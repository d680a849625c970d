#include "platform/client/text/node_parts.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

TEST(NodeParts, AreWordsWithoutWhatThereIsNoneOf) {
  EXPECT_EQ(PartText(1, 0, 0), "1 core");
  EXPECT_EQ(PartText(2, 8'000'000'000, 1), "2 cores, 8.00 GB, 1 GPU");
  EXPECT_EQ(PlaceText("n1", {0, 1, 3}, 500'000'000, {"0", "2"}),
            "n1 (cores 0-1,3, 500 MB, GPUs 0,2)");
  EXPECT_EQ(PlaceText("n1", {7}, 0, {}), "n1 (core 7)");
}

}  // namespace
}  // namespace tutti::client
