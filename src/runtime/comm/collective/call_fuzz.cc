// What peers say they call (GroupOptions::check_calls) is judged as it came: whatever it is, it is
// found to differ exactly when it does, and described.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/comm/collective/call.h"

namespace {

using tutti::comm::Call;

void Expect(bool holds) {
  if (!holds) std::abort();
}

// An error names both kinds of call.
void ExpectVerdict(const absl::Status& status, bool alike, const Call& a, const Call& b) {
  Expect(status.ok() == alike);
  if (alike) return;
  const std::string text(status.message());
  Expect(absl::IsFailedPrecondition(status));
  for (const Call& call : {a, b}) Expect(text.find(Describe(call)) != std::string::npos);
}

bool SameBytes(const Call& a, const Call& b) { return std::memcmp(&a, &b, sizeof(Call)) == 0; }

void JudgeAll(const std::vector<Call>& calls) {
  const auto other = std::find_if(calls.begin(), calls.end(),
                                  [&](const Call& call) { return !SameBytes(call, calls[0]); });
  const bool alike = other == calls.end();
  ExpectVerdict(JudgeCalls(calls), alike, calls[0], alike ? calls[0] : *other);
}

// Rank 2 sends to rank 1 or receives from it, which says `other`.
void JudgeOne(Call own, const Call& other) {
  own.kind = own.count % 2 == 0 ? Call::Kind::kSend : Call::Kind::kReceive;
  own.peer = 1;
  Call answer = own;
  answer.kind = own.kind == Call::Kind::kSend ? Call::Kind::kReceive : Call::Kind::kSend;
  answer.peer = 2;
  ExpectVerdict(JudgePair(2, own, other), SameBytes(answer, other), own, other);
  Expect(JudgePair(2, own, answer).ok());
}

// Checks how sizes of two ranks are judged: they agree if each rank sends itself what it receives
// from itself, and sends the other what that one wants.
void JudgeSizes(const uint8_t* data, size_t size) {
  std::vector<uint64_t> rows(8);
  std::memcpy(rows.data(), data, std::min(size, rows.size() * sizeof(uint64_t)));
  const bool alike =
      rows[0] == rows[2] && rows[1] == rows[6] && rows[4] == rows[3] && rows[5] == rows[7];
  Expect(tutti::comm::JudgeParts(rows, 2).ok() == alike);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMostRanks = 5;
  std::vector<Call> calls(1 + std::min(size / sizeof(Call), kMostRanks));
  std::memcpy(calls.data(), data, std::min(size, calls.size() * sizeof(Call)));
  JudgeAll(calls);
  JudgeOne(calls.front(), calls.back());
  JudgeSizes(data, size);
  return 0;
}
