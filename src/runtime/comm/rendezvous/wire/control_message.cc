#include "runtime/comm/rendezvous/wire/control_message.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/rendezvous/wire/codec.h"

namespace tutti::comm {
namespace {

constexpr int kMostGenerations = 1 << 30;

template <typename Codec>
void Rank(Codec& codec, int& rank) {
  codec.Number(rank, 0, kMostRanks - 1);
}
template <typename Codec>
void Code(Codec& codec, absl::StatusCode& code) {
  codec.Choice(code, absl::StatusCode::kUnauthenticated);
}
template <typename Codec>
void Describe(Codec& codec, Hello& hello) {
  Rank(codec, hello.rank);
  codec.Number(hello.size, 1, kMostRanks);
  codec.Number(hello.node, 0, kMostRanks - 1);
  codec.Choice(hello.transport, GroupOptions::Transport::kUcx);
  codec.Text(hello.host);
  codec.Text(hello.address);
  codec.Number(hello.port, 0, 65535);
  codec.Text(hello.local_name);
  codec.Number(hello.rejoin_port, 0, 65535);
  codec.Flag(hello.encrypt);
  codec.Number(hello.streams, 0, kMostTcpStreams);
  codec.Flag(hello.deterministic);
  codec.Flag(hello.check_calls);
  codec.Flag(hello.rdma);
}
template <typename Codec>
void Describe(Codec& codec, Table& table) {
  codec.Text(table.group);
  codec.List(table.ranks, [&](Hello& hello) { Describe(codec, hello); });
  codec.Number(table.generation, 0, kMostGenerations);
}
template <typename Codec>
void Describe(Codec& codec, Refusal& refusal) {
  Code(codec, refusal.code);
  codec.Text(refusal.text);
}
template <typename Codec>
void Describe(Codec& codec, Link& link) {
  codec.Text(link.group);
  Rank(codec, link.from);
  Rank(codec, link.to);
}
template <typename Codec>
void Describe(Codec& codec, Progress& progress) {
  codec.Count(progress.begun);
  codec.Count(progress.finished);
  codec.Flag(progress.answer);
  codec.Number(progress.waiting, 0, kMostRanks);
}
template <typename Codec>
void Describe(Codec& codec, Query& query) {
  codec.Count(query.until);
}
template <typename Codec>
void Describe(Codec& codec, FailureReport& report) {
  Rank(codec, report.rank);
  codec.Choice(report.reason, Reason::kPeerLate);
}
template <typename Codec>
void Describe(Codec& codec, Departure& departure) {
  Rank(codec, departure.rank);
  codec.Flag(departure.clean);
  codec.Count(departure.finished);
  Code(codec, departure.code);
  codec.Text(departure.text);
  codec.Flag(departure.reforming);
}
template <typename Codec>
void Describe(Codec& codec, LeaveNotice& notice) {
  codec.Count(notice.finished);
  codec.Flag(notice.reforming);
}
template <typename Codec>
void Describe(Codec&, LeaveAck&) {}
template <typename Codec>
void Describe(Codec& codec, ControlPayload& payload) {
  codec.Bytes(payload.payload, kLongestPayload);
}
template <typename Codec>
void Describe(Codec& codec, Promise& promise) {
  codec.Text(promise.group);
  Describe(codec, promise.self);
  codec.List(promise.ended, [&](int& rank) { Rank(codec, rank); });
  codec.Number(promise.agreed_at, -1, kMostRanks - 1);
  Describe(codec, promise.agreed);
}
template <typename Codec>
void Describe(Codec& codec, Propose& propose) {
  Describe(codec, propose.table);
}
template <typename Codec>
void Describe(Codec&, Accepted&) {}
template <typename Codec>
void Describe(Codec& codec, Decided& decided) {
  Describe(codec, decided.table);
  codec.Flag(decided.from_rank_zero);
}
template <typename Codec>
void Describe(Codec& codec, SuccessorQuery& ask) {
  codec.Text(ask.group);
}
template <typename Codec>
void Describe(Codec& codec, GroupStatus& standing) {
  codec.Number(standing.generation, 0, kMostGenerations);
  codec.Number(standing.size, 0, kMostRanks);
  codec.Number(standing.waiting, 0, kMostRanks);
}
template <typename Codec>
void Describe(Codec& codec, JoinRequest& request) {
  Describe(codec, request.self);
}
template <typename Codec>
void Describe(Codec& codec, Redirect& elsewhere) {
  codec.Text(elsewhere.address);
  codec.Number(elsewhere.port, 1, 65535);
}

// The alternative number `type` of Message, read from the rest.
template <size_t kIndex = 0>
absl::StatusOr<Message> ReadAlternative(size_t type, Reader& reader) {
  if constexpr (kIndex == std::variant_size_v<Message>) {
    return absl::InvalidArgumentError(absl::StrCat("unknown message type ", type));
  } else {
    if (type != kIndex) return ReadAlternative<kIndex + 1>(type, reader);
    std::variant_alternative_t<kIndex, Message> value;
    Describe(reader, value);
    if (!reader.ok() || !reader.at_end()) {
      return absl::InvalidArgumentError(absl::StrCat("malformed message of type ", type));
    }
    return Message(std::move(value));
  }
}

}  // namespace

std::string Write(const Message& message) {
  Writer writer;
  writer.Integer<uint8_t>(static_cast<uint8_t>(message.index()));
  Message copy = message;  // Describe serves reading too and so takes fields by reference
  std::visit([&](auto& value) { Describe(writer, value); }, copy);
  return writer.Take();
}

absl::StatusOr<Message> Read(absl::string_view bytes) {
  if (bytes.empty() || bytes.size() > kLongestMessage) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", bytes.size(), " bytes"));
  }
  Reader reader(bytes);
  const size_t type = reader.Integer<uint8_t>();
  return ReadAlternative(type, reader);
}

std::string Frame(const Message& message) {
  const std::string body = Write(message);
  Writer writer;
  writer.Integer<uint32_t>(static_cast<uint32_t>(body.size()));
  return writer.Take() + body;
}

}  // namespace tutti::comm
