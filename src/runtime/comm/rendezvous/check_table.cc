#include "runtime/comm/rendezvous/check_table.h"

#include <set>
#include <string>
#include <utility>

namespace tutti::comm {

absl::Status CheckTable(const Table& table) {
  const int size = static_cast<int>(table.ranks.size());
  bool good = size > 0 && size <= kMostRanks;
  std::set<std::pair<absl::string_view, int>> listeners;
  for (int rank = 0; good && rank < size; ++rank) {
    const Hello& hello = table.ranks[rank];
    good = hello.rank == rank && hello.size == size &&
           (hello.rejoin_port == 0 || listeners.emplace(hello.address, hello.rejoin_port).second);
  }
  return good ? absl::OkStatus() : absl::InvalidArgumentError("a table that is not whole");
}

absl::Status CheckPromise(const Promise& promise, const Table& generation) {
  const int size = static_cast<int>(generation.ranks.size());
  if (promise.self.rank < 0 || promise.self.rank >= size || promise.agreed_at >= size) {
    return absl::InvalidArgumentError("the vote of a rank that is not in the group");
  }
  return promise.agreed_at < 0 ? absl::OkStatus() : CheckTable(promise.agreed);
}

}  // namespace tutti::comm
