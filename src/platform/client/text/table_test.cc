#include "platform/client/text/table.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

Table Jobs() {
  Table table({{"NAME"}, {"AGE", Table::Align::kRight}, {"REASON", Table::Align::kLeft, true}});
  table.Add({{"a"}, {"3 min"}, {"waits for 2 nodes; the job before it ends soon"}});
  table.Add({{"größer"}, {"1 s"}, {"done", Tint::kGreen}});
  return table;
}

TEST(Table, AlignsColumns) {
  EXPECT_EQ(Jobs().Render(0, false),
            "NAME      AGE  REASON\n"
            "a       3 min  waits for 2 nodes; the job before it ends soon\n"
            "größer    1 s  done\n");
}

TEST(Table, ShortensWhatMayShrinkUntilItFits) {
  EXPECT_EQ(Jobs().Render(30, false),
            "NAME      AGE  REASON\n"
            "a       3 min  waits for 2 no…\n"
            "größer    1 s  done\n");
}

TEST(Table, NeverShrinksBelowEightColumns) {
  EXPECT_NE(Jobs().Render(5, false).find("waits f…"), std::string::npos);
}

TEST(Table, LeavesOutWhatItMayWhereThatIsNotEnough) {
  Table table({{"NAME"},
               {"STATE"},
               {"AGE", Table::Align::kRight, false, 1},
               {"RAN", Table::Align::kRight, false, 2}});
  table.Add({{"a-job-with-a-name"}, {"Running"}, {"3 min"}, {"2:10"}});
  EXPECT_EQ(table.Render(33, false),
            "NAME               STATE      AGE\n"
            "a-job-with-a-name  Running  3 min\n");
  EXPECT_EQ(table.Render(20, false),
            "NAME         STATE\n"
            "a-job-with…  Running\n");
}

TEST(Table, LeavesOthersOutBeforeAColumnIsCutTooShort) {
  Table table({{"NAME"},
               {"AGE", Table::Align::kRight, false, 2},
               {"REASON", Table::Align::kLeft, true, 1, 16}});
  table.Add({{"a"}, {"3 min"}, {"waits for 2 nodes of 3"}});
  EXPECT_EQ(table.Render(29, false),
            "NAME    AGE  REASON\n"
            "a     3 min  waits for 2 nod…\n");
  EXPECT_EQ(table.Render(28, false),
            "NAME  REASON\n"
            "a     waits for 2 nodes of 3\n");
  EXPECT_EQ(table.Render(14, false),
            "NAME\n"
            "a\n");
}

TEST(Table, DropsEmptyColumnsThatMayBeLeftOut) {
  Table table(
      {{"A"}, {"B", Table::Align::kLeft, false, 1}, {"C", Table::Align::kLeft, false, 1}, {"D"}});
  table.Add({{"a"}, {}, {}, {}});
  table.Add({{"a"}, {}, {"c"}, {}});
  table.DropEmpty();
  EXPECT_EQ(table.Render(0, false),
            "A  C  D\n"
            "a\n"
            "a  c\n");
}

TEST(Table, ColoursOnlyWhenAsked) {
  EXPECT_EQ(Jobs().Render(0, false).find('\x1b'), std::string::npos);
  EXPECT_NE(Jobs().Render(0, true).find("\x1b[32mdone\x1b[0m"), std::string::npos);
}

TEST(Table, ForeignTextCannotBreakItsLine) {
  Table table({{"A"}});
  table.Add({{"x\ny\tz\x1b[2J"}});
  EXPECT_EQ(table.Render(0, false), "A\nx?y z?[2J\n");
}

}  // namespace
}  // namespace tutti::client
