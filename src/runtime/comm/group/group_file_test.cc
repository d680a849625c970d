#include "runtime/comm/group/group_file.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

TEST(GroupFileTest, WhatIsWrittenIsReadAgain) {
  Table table{"g", std::vector<Hello>(2), 0};
  table.ranks[0].address = "10.0.0.1";
  table.ranks[0].rejoin_port = 4000;
  table.ranks[1].address = "fe80::1";
  table.ranks[1].rejoin_port = 65535;
  EXPECT_EQ(GroupFileOf(table), "10.0.0.1:4000\n[fe80::1]:65535\n");
  const auto places = ReadGroupFile(GroupFileOf(table));
  ASSERT_TRUE(places.ok()) << places.status();
  ASSERT_EQ(places->size(), 2u);
  EXPECT_EQ(places->at(1).host, "fe80::1");
  EXPECT_EQ(places->at(1).port, 65535);
}

TEST(GroupFileTest, WhatIsNoPlaceIsSaid) {
  for (const char* const line :
       {"10.0.0.1", ":4000", "10.0.0.1:0", "10.0.0.1:65536", "host:port"}) {
    const auto status = ReadGroupFile(line).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line;
    EXPECT_NE(status.message().find(line), absl::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace tutti::comm
