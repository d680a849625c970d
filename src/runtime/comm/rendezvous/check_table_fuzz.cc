// What ranks say of a group's members, in every message that holds a table: it is refused, or all
// of its ranks are where their number says.
#include <cstdint>
#include <cstdlib>

#include "runtime/comm/rendezvous/check_table.h"
#include "runtime/comm/rendezvous/membership/generation.h"

namespace {

using tutti::comm::Table;

void Check(const Table& table) {
  if (!tutti::comm::CheckTable(table).ok()) return;
  for (size_t rank = 0; rank < table.ranks.size(); ++rank) {
    const auto& hello = table.ranks[rank];
    if (hello.rejoin_port != 0 && tutti::comm::RankIn(table, hello) != static_cast<int>(rank)) {
      std::abort();
    }
  }
}

// A leader of a generation of three hears a vote.
void Vote(const tutti::comm::Promise& promise) {
  Table generation{promise.group, std::vector<tutti::comm::Hello>(3), 0};
  tutti::comm::ReformAgreement leader(0, generation);
  leader.Start({}, {}, "next", absl::Seconds(1), absl::ZeroDuration());
  if (leader.Leader() != 0 || !tutti::comm::CheckPromise(promise, generation).ok()) return;
  leader.OnPromise(promise);
  leader.OnAccepted(promise.self.rank);
  const auto verdict = leader.Next(absl::Seconds(100));
  const auto* const proposal = std::get_if<tutti::comm::ReformAgreement::Proposal>(&verdict);
  if (proposal != nullptr && proposal->table.ranks.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = tutti::comm::Read({reinterpret_cast<const char*>(data), size});
  if (!message.ok()) return 0;
  if (const auto* const table = std::get_if<Table>(&*message)) Check(*table);
  if (const auto* const propose = std::get_if<tutti::comm::Propose>(&*message)) {
    Check(propose->table);
  }
  if (const auto* const decided = std::get_if<tutti::comm::Decided>(&*message)) {
    Check(decided->table);
  }
  if (const auto* const promise = std::get_if<tutti::comm::Promise>(&*message)) {
    Check(promise->agreed);
    Vote(*promise);
  }
  return 0;
}
