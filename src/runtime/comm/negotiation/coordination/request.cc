#include "runtime/comm/negotiation/coordination/request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kMostFromOne = int64_t{1} << 46;  // as many ranks as there may be: no overflow

bool Reduces(Kind kind) { return kind == Kind::kAllReduce || kind == Kind::kReduceScatter; }
bool HasRows(Kind kind) { return kind == Kind::kAllGather || kind == Kind::kAllToAll; }

std::string Text(const Part& part, bool any_rows) {
  std::string shape = absl::StrJoin(part.shape, ",");
  if (any_rows) shape = absl::StrCat("*", shape.substr(std::min(shape.find(','), shape.size())));
  return absl::StrCat(NameOf(part.type), "[", shape, "]");
}

absl::Status CheckPart(const Part& part, Kind kind) {
  if (part.shape.size() > kMostDimensions) {
    return absl::InvalidArgumentError(absl::StrCat(part.shape.size(), " dimensions"));
  }
  if (part.shape.empty() && (HasRows(kind) || kind == Kind::kReduceScatter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a scalar has no first dimension for an ", NameOf(kind)));
  }
  int64_t bytes = static_cast<int64_t>(SizeOf(part.type));
  for (const int64_t extent : part.shape) {
    if (extent < 0 || (extent > 0 && bytes > kMostBytes / extent)) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", Text(part, false)));
    }
    bytes *= std::max<int64_t>(extent, 1);
  }
  return absl::OkStatus();
}

absl::Status CheckOperation(const Request& request) {
  for (const Part& part : request.parts) {
    if (request.op == ReduceOp::kMean && part.type == DataType::kBool) {
      return absl::InvalidArgumentError("there is no mean of bools");
    }
    if (request.op == ReduceOp::kAdasum && !IsFloatingPoint(part.type)) {
      return absl::InvalidArgumentError(absl::StrCat("there is no Adasum of ", NameOf(part.type)));
    }
  }
  if (request.op == ReduceOp::kAdasum && request.kind == Kind::kReduceScatter) {
    return absl::InvalidArgumentError("there is no reduce-scatter by Adasum");
  }
  return absl::OkStatus();
}

const char* NameOf(Wire wire) {
  constexpr const char* kNames[] = {"they are", "float16", "bfloat16", "int8"};
  return kNames[static_cast<size_t>(wire)];
}

absl::Status CheckWire(const Request& request) {
  if (request.wire == Wire::kPlain) return absl::OkStatus();
  const bool adds = request.op == ReduceOp::kSum || request.op == ReduceOp::kMean;
  if (request.kind == Kind::kAllReduce && adds && request.parts.size() == 1 &&
      request.parts[0].type == DataType::kFloat32) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "only the sum or mean of one tensor of float32 can be sent in fewer bits");
}

absl::Status CheckDevice(const Request& request) {
  if (!request.device) return absl::OkStatus();
  const bool reduces = request.kind == Kind::kAllReduce && request.op != ReduceOp::kAdasum &&
                       request.wire == Wire::kPlain;
  const bool has_shorts = std::any_of(request.parts.begin(), request.parts.end(),
                                      [](const Part& p) { return p.type == DataType::kInt16; });
  if (request.kind == Kind::kBroadcast || (reduces && !has_shorts)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "in memory of GPUs there are all-reduces (not of int16, not encoded, not Adasum) and "
      "broadcasts");
}

}  // namespace

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "all-reduce";
    case Kind::kAllGather:
      return "all-gather";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kAllToAll:
      return "all-to-all";
    case Kind::kReduceScatter:
      return "reduce-scatter";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kJoin:
      return "join";
    case Kind::kAddSet:
      return "addition of a process set";
    case Kind::kRemoveSet:
      return "removal of a process set";
  }
  return "";
}

std::string Request::Key() const { return absl::StrCat(set, "/", name); }

std::string Request::Describe() const {
  std::string text =
      absl::StrCat(kind == Kind::kBroadcast || kind == Kind::kReduceScatter ||
                           kind == Kind::kBarrier || kind == Kind::kJoin || kind == Kind::kRemoveSet
                       ? "a "
                       : "an ",
                   NameOf(kind));
  if (Reduces(kind)) absl::StrAppend(&text, " (", NameOf(op), ")");
  if (kind == Kind::kBroadcast) absl::StrAppend(&text, " from rank ", root);
  if (kind == Kind::kRemoveSet) absl::StrAppend(&text, " ", root);
  if (kind == Kind::kAddSet) absl::StrAppend(&text, " of ranks ", absl::StrJoin(ranks, ","));
  if (parts.size() > 1) absl::StrAppend(&text, " of ", parts.size(), " tensors");
  for (size_t i = 0; i < std::min<size_t>(parts.size(), 8); ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : (parts.size() > 1 ? ": " : " of "),
                    Text(parts[i], HasRows(kind)));
  }
  if (parts.size() > 8) absl::StrAppend(&text, ", ...");
  if (prescale != 1) absl::StrAppend(&text, ", scaled by ", prescale, " before");
  if (postscale != 1) absl::StrAppend(&text, ", scaled by ", postscale, " after");
  if (wire != Wire::kPlain) absl::StrAppend(&text, ", sent as ", NameOf(wire));
  if (device) absl::StrAppend(&text, ", on GPUs");
  return text;
}

int64_t Elements(const Part& part) {
  int64_t count = 1;
  for (const int64_t extent : part.shape) count *= extent;
  return count;
}
size_t Bytes(const Part& part) { return static_cast<size_t>(Elements(part)) * SizeOf(part.type); }
size_t Bytes(const Request& request) {
  size_t bytes = 0;
  for (const Part& part : request.parts) bytes += Bytes(part);
  return bytes;
}

size_t MessageBytes(const Request& request) {
  size_t bytes = 128 + request.name.size() + 4 * request.ranks.size();
  for (const Part& part : request.parts) bytes += 16 + 8 * part.shape.size();
  return bytes;
}

bool AreRows(const Part& part, int64_t rows) {
  if (part.shape.empty() || rows < 0 || rows > kMostFromOne) return false;
  Part row = part;
  row.shape[0] = 1;
  return rows == 0 || static_cast<int64_t>(Bytes(row)) <= kMostFromOne / rows;
}

bool IsRunBesideJoined(Kind kind) { return kind == Kind::kAllReduce || kind == Kind::kBarrier; }

bool IsFusable(const Request& request) {
  return request.kind == Kind::kBroadcast ||
         (request.kind == Kind::kAllReduce && request.op != ReduceOp::kAdasum &&
          request.wire == Wire::kPlain);
}

bool FuseTogether(const Request& a, const Request& b) {
  return a.kind == b.kind && a.set == b.set && a.op == b.op && a.root == b.root &&
         a.prescale == b.prescale && a.postscale == b.postscale && a.device == b.device &&
         IsFusable(a);
}

absl::Status Check(const Request& request) {
  if (request.name.empty() || request.name.size() > kLongestName) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor's name has 1 to ", kLongestName, " bytes"));
  }
  if (request.parts.size() > kMostParts) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", request.parts.size(), " tensors; ", kMostParts, " at most"));
  }
  for (const Part& part : request.parts) TUTTI_RETURN_IF_ERROR(CheckPart(part, request.kind));
  if (Bytes(request) > static_cast<size_t>(kMostBytes)) {
    return absl::InvalidArgumentError("more bytes in one group than there are");
  }
  if (request.kind >= Kind::kAddSet && request.set != kWorldSet) {
    return absl::InvalidArgumentError("process sets are added and removed by all ranks");
  }
  if (request.kind == Kind::kJoin && request.name != NameOf(Kind::kJoin)) {
    return absl::InvalidArgumentError("a join has one name");
  }
  TUTTI_RETURN_IF_ERROR(CheckWire(request));
  TUTTI_RETURN_IF_ERROR(CheckDevice(request));
  return Reduces(request.kind) ? CheckOperation(request) : absl::OkStatus();
}

}  // namespace tutti::comm
