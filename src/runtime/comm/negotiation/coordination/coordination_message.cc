#include "runtime/comm/negotiation/coordination/coordination_message.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/rendezvous/wire/codec.h"

namespace tutti::comm {
namespace {

template <typename Codec>
void Signed(Codec& codec, int64_t& value) {
  uint64_t bits = static_cast<uint64_t>(value);
  codec.Count(bits);
  value = static_cast<int64_t>(bits);
}
template <typename Codec>
void Identifier(Codec& codec, uint32_t& id) {
  int value = static_cast<int>(id);
  codec.Number(value, 0, INT32_MAX);
  id = static_cast<uint32_t>(value);
}
template <typename Codec>
void Time(Codec& codec, absl::Duration& value) {
  int64_t nanoseconds = absl::ToInt64Nanoseconds(value);
  Signed(codec, nanoseconds);
  value = absl::Nanoseconds(nanoseconds);
}
// A rank, or -1 for none.
template <typename Codec>
void RankOrNone(Codec& codec, int& rank) {
  int above = rank + 1;
  codec.Number(above, 0, kMostRanks);
  rank = above - 1;
}
template <typename Codec>
void Set(Codec& codec, int& set) {
  codec.Number(set, 0, INT32_MAX);
}
template <typename Codec>
void Rows(Codec& codec, std::vector<int64_t>& rows) {
  codec.List(rows, [&](int64_t& value) { Signed(codec, value); });
}
template <typename Codec>
void Ranks(Codec& codec, std::vector<int>& ranks) {
  codec.List(ranks, [&](int& rank) { codec.Number(rank, 0, kMostRanks - 1); });
}

template <typename Codec>
void Describe(Codec& codec, Request& request) {
  codec.Choice(request.kind, Kind::kRemoveSet);
  Set(codec, request.set);
  codec.Text(request.name, kLongestName);
  codec.Choice(request.op, ReduceOp::kAdasum);
  codec.Number(request.root, 0, INT32_MAX);
  codec.Real(request.prescale);
  codec.Real(request.postscale);
  codec.Choice(request.wire, Wire::kInt8);
  codec.Flag(request.device);
  codec.List(request.parts, [&](Part& part) {
    codec.Choice(part.type, DataType::kBool);
    Rows(codec, part.shape);
  });
  Ranks(codec, request.ranks);
}
template <typename Codec>
void Describe(Codec& codec, Announcement& announcement) {
  Identifier(codec, announcement.id);
  if (announcement.id == 0) Describe(codec, announcement.request);
  Rows(codec, announcement.rows);
}
template <typename Codec>
void Describe(Codec& codec, Report& report) {
  codec.Count(report.executed);
  codec.Flag(report.leaves);
  codec.List(report.announcements, [&](Announcement& one) { Describe(codec, one); });
}
template <typename Codec>
void Describe(Codec& codec, Unit& unit) {
  Identifier(codec, unit.id);
  codec.Flag(unit.full);
  if (unit.full) Describe(codec, unit.request);
  Rows(codec, unit.rows);
  codec.Choice(unit.code, absl::StatusCode::kUnauthenticated);
  codec.Text(unit.error, kLongestError);
  RankOrNone(codec, unit.blamed);
}
template <typename Codec>
void Describe(Codec& codec, Response& response) {
  Set(codec, response.set);
  Signed(codec, response.value);
  codec.Count(response.fusion_bytes);
  codec.List(response.units, [&](Unit& unit) { Describe(codec, unit); });
}
template <typename Codec>
void Describe(Codec& codec, Stall& stall) {
  codec.Text(stall.tensor, kLongestName);
  Set(codec, stall.set);
  Time(codec, stall.waited);
  Ranks(codec, stall.missing);
  RankOrNone(codec, stall.silent);
  Time(codec, stall.silence);
}
template <typename Codec>
void Describe(Codec& codec, End& end) {
  codec.Choice(end.code, absl::StatusCode::kUnauthenticated);
  codec.Text(end.text, kLongestError);
  RankOrNone(codec, end.blamed);
}
template <typename Codec>
void Describe(Codec& codec, Orders& orders) {
  codec.List(orders.responses, [&](Response& response) { Describe(codec, response); });
  codec.List(orders.unknown, [&](uint32_t& id) { Identifier(codec, id); });
  codec.List(orders.stalls, [&](Stall& stall) { Describe(codec, stall); });
  bool ends = orders.end.has_value();
  codec.Flag(ends);
  if (ends && !orders.end.has_value()) orders.end.emplace();
  if (ends) Describe(codec, *orders.end);
  codec.Flag(orders.leave_ack);
}

template <typename T>
std::string WriteAny(const T& message) {
  Writer writer;
  T copy = message;  // Describe serves reading too and so takes fields by reference
  Describe(writer, copy);
  return writer.Take();
}

template <typename T>
absl::StatusOr<T> ReadAny(absl::string_view bytes) {
  Reader reader(bytes);
  T message;
  Describe(reader, message);
  if (!reader.ok() || !reader.at_end()) {
    return absl::InvalidArgumentError("malformed message of the negotiation");
  }
  return message;
}

}  // namespace

std::string Stall::ToString() const {
  std::string text = absl::StrCat("tensor \"", tensor, "\"");
  if (set != kWorldSet) absl::StrAppend(&text, " of process set ", set);
  absl::StrAppend(&text, " has waited ",
                  absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(100))));
  if (silent >= 0) {
    absl::StrAppend(&text, " for rank ", silent, ", of which nothing has been heard for ",
                    absl::FormatDuration(absl::Trunc(silence, absl::Milliseconds(100))));
  } else {
    absl::StrAppend(&text, missing.size() == 1 ? " for rank " : " for ranks ",
                    absl::StrJoin(missing, ", "));
  }
  return text;
}

std::string Write(const Report& report) { return WriteAny(report); }
std::string Write(const Orders& orders) { return WriteAny(orders); }
absl::StatusOr<Report> ReadReport(absl::string_view bytes) { return ReadAny<Report>(bytes); }
absl::StatusOr<Orders> ReadOrders(absl::string_view bytes) { return ReadAny<Orders>(bytes); }

}  // namespace tutti::comm
