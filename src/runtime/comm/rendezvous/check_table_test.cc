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
    hello.rejoin_port = 100 + rank;
  }
  return table;
}

TEST(CheckTableTest, AWholeTableIs) {
  Table table = TableOfTwo();
  EXPECT_TRUE(CheckTable(table).ok());
  for (Hello& hello : table.ranks) hello.rejoin_port = 0;  // not elastic
  EXPECT_TRUE(CheckTable(table).ok());
}

TEST(CheckTableTest, WrongNumbersSizesRejoinPortsAndNobodyAreNot) {
  EXPECT_FALSE(CheckTable(Table{}).ok());
  for (const auto spoil : {+[](Table& table) { table.ranks[1].rank = 0; },
                           +[](Table& table) { table.ranks[0].size = 3; },
                           +[](Table& table) { table.ranks[1].rejoin_port = 100; }}) {
    Table table = TableOfTwo();
    spoil(table);
    EXPECT_TRUE(absl::IsInvalidArgument(CheckTable(table)));
  }
}

TEST(CheckTableTest, APromiseIsOfAMemberAndForATable) {
  const Table generation = TableOfTwo();
  Promise promise;
  promise.self.rank = 1;
  EXPECT_TRUE(CheckPromise(promise, generation).ok());
  promise.agreed_at = 0;
  EXPECT_FALSE(CheckPromise(promise, generation).ok()) << "for an empty table";
  promise.agreed = generation;
  EXPECT_TRUE(CheckPromise(promise, generation).ok());
  promise.agreed_at = 2;
  EXPECT_FALSE(CheckPromise(promise, generation).ok()) << "at a leader that there is not";
  promise.agreed_at = 0;
  promise.self.rank = 2;
  EXPECT_FALSE(CheckPromise(promise, generation).ok());
}

}  // namespace
}  // namespace tutti::comm
