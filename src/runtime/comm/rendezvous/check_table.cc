#include "runtime/comm/rendezvous/check_table.h"

#include <set>
#include <string>
#include <utility>

namespace tutti::comm {

absl::Status CheckTable(const Table& table) {
  const int size = static_cast<int>(table.ranks.size());
  bool good = size > 0 && size <= kMostRanks;
  std::set<std::pair<absl::string_view, int>> doors;
  for (int rank = 0; good && rank < size; ++rank) {
    const Hello& hello = table.ranks[rank];
    good = hello.rank == rank && hello.size == size &&
           (hello.door == 0 || doors.emplace(hello.address, hello.door).second);
  }
  return good ? absl::OkStatus() : absl::InvalidArgumentError("a table that is not whole");
}

absl::Status CheckVote(const Come& come, const Table& generation) {
  const int size = static_cast<int>(generation.ranks.size());
  if (come.self.rank < 0 || come.self.rank >= size || come.agreed_at >= size) {
    return absl::InvalidArgumentError("the vote of a rank that is not in the group");
  }
  return come.agreed_at < 0 ? absl::OkStatus() : CheckTable(come.agreed);
}

}  // namespace tutti::comm
