#include "runtime/comm/rendezvous/check_table.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

Table TableOfTwo() {
  Table table{"g", std::vector<Hello>(2), 0};
  for (int rank = 0; rank < 2; ++rank) {
    Hello& hello = table.ranks[rank];
    hello.rank = rank;
    hello.size = 2;
    hello.address = "127.0.0.1";
    hello.door = 100 + rank;
  }
  return table;
}

TEST(CheckTableTest, AWholeTableIs) {
  Table table = TableOfTwo();
  EXPECT_TRUE(CheckTable(table).ok());
  for (Hello& hello : table.ranks) hello.door = 0;  // not elastic
  EXPECT_TRUE(CheckTable(table).ok());
}

TEST(CheckTableTest, WrongNumbersSizesDoorsAndNobodyAreNot) {
  EXPECT_FALSE(CheckTable(Table{}).ok());
  for (const auto spoil : {+[](Table& table) { table.ranks[1].rank = 0; },
                           +[](Table& table) { table.ranks[0].size = 3; },
                           +[](Table& table) { table.ranks[1].door = 100; }}) {
    Table table = TableOfTwo();
    spoil(table);
    EXPECT_TRUE(absl::IsInvalidArgument(CheckTable(table)));
  }
}

TEST(CheckTableTest, AVoteIsOfAMemberAndForATable) {
  const Table generation = TableOfTwo();
  Come come;
  come.self.rank = 1;
  EXPECT_TRUE(CheckVote(come, generation).ok());
  come.agreed_at = 0;
  EXPECT_FALSE(CheckVote(come, generation).ok()) << "for an empty table";
  come.agreed = generation;
  EXPECT_TRUE(CheckVote(come, generation).ok());
  come.agreed_at = 2;
  EXPECT_FALSE(CheckVote(come, generation).ok()) << "at a leader that there is not";
  come.agreed_at = 0;
  come.self.rank = 2;
  EXPECT_FALSE(CheckVote(come, generation).ok());
}

}  // namespace
}  // namespace tutti::comm
