// Defines the messages that the ranks of a group exchange apart from data: who they are when they
// meet, and that they live, leave or miss somebody afterwards. A message is one type byte and its
// fields in order, integers little-endian, texts with a 16-bit length; on a connection it follows
// its own 32-bit length. Read() is pure and takes hostile bytes: it is fuzzed by
// control_message_fuzz.cc.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rendezvous/wire/codec.h"

namespace tutti::comm {

inline constexpr uint32_t kProtocolVersion = 4;
inline constexpr int kMostTcpStreams = 64;
inline constexpr size_t kLongestMessage = 16 << 20;  // a table of kMostRanks fits
inline constexpr size_t kLongestPayload = 1 << 20;
inline constexpr size_t kLongestSmallMessage = 4096;  // every other message fits

// A rank introduces itself.
struct Hello {
  int rank = 0;
  int size = 0;
  int node = 0;
  GroupOptions::Transport transport = GroupOptions::Transport::kAuto;
  std::string host;     // equal for processes that can share memory
  std::string address;  // its TCP listener
  int port = 0;
  std::string local_name;  // its listener for ranks that share memory
  int rejoin_port = 0;     // where it is found while the group runs; 0 unless the group is elastic
  bool encrypt = false;    // TLS on the data path between nodes
  int streams = 1;         // of TCP; 0: measured
  bool deterministic = false;
  bool check_calls = false;
  bool rdma = false;  // may use it: UCX can send by it here, and nothing else was asked for
};

// Rank 0's answer when all have come: everybody's Hello, in rank order.
struct Table {
  std::string group;  // a name drawn for this group alone
  std::vector<Hello> ranks;
  int generation = 0;  // how often the group has re-formed
};

// Rank 0's answer when the group cannot be.
struct Refusal {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string text;
};

// The first message on a connection for data.
struct Link {
  std::string group;
  int from = 0;
  int to = 0;
};

// How far a rank is: collectives begun and finished. Sent as a heartbeat and as answer to Query.
struct Progress {
  uint64_t begun = 0;
  uint64_t finished = 0;
  bool answer = false;
  int waiting = 0;  // rank 0: newcomers that wait for it
};
// Asks for a Progress at once, and for another when `until` collectives are finished.
struct Query {
  uint64_t until = 0;
};

// A rank misses another: to rank 0, which judges.
enum class Reason : uint8_t {
  kClosed,
  kLate,
  kPeerLate,  // in an exchange of two, of which the other ranks know nothing
};
struct FailureReport {
  int rank = 0;
  Reason reason = Reason::kClosed;
};

// Rank 0's judgement, the same for all: `rank` is gone.
struct Departure {
  int rank = 0;
  bool clean = false;  // it gave notice: fatal only to collectives after the `finished` first ones
  uint64_t finished = 0;
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::string text;  // "connection closed"
  bool reforming = false;
};

// A rank leaves in good order, and the answer that says that this was heard.
struct LeaveNotice {
  uint64_t finished = 0;
  bool reforming = false;  // it will vote on what follows: its end is no proof that it has not
};
struct LeaveAck {};

// What a layer above says to rank 0 or hears from it (control.h).
struct ControlPayload {
  std::string payload;
};

// Re-forming; reform_agreement.h tells how these follow each other.
//
// A member of the group named so votes: whom it saw end, and what it has accepted, at which leader.
struct Promise {
  std::string group;
  Hello self;  // with its number in that group
  std::vector<int> ended;
  int agreed_at = -1;
  Table agreed;
};
struct Propose {
  Table table;
};
struct Accepted {};
struct Decided {
  Table table;
  bool from_rank_zero = false;  // this connection is the one to rank 0 of the new group
};
// Has the group named so been followed by another? Decided, if the one who is asked knows.
struct SuccessorQuery {
  std::string group;
};
struct GroupStatus {
  int generation = 0;
  int size = 0;
  int waiting = 0;
};
// A newcomer, and the answer of a member that does not receive newcomers.
struct JoinRequest {
  Hello self;
};
struct Redirect {
  std::string address;
  int port = 0;
};

using Message = std::variant<Hello, Table, Refusal, Link, Progress, Query, FailureReport, Departure,
                             LeaveNotice, LeaveAck, ControlPayload, Promise, Propose, Accepted,
                             Decided, SuccessorQuery, GroupStatus, JoinRequest, Redirect>;

// Writes a message; texts longer than kLongestText are cut.
std::string Write(const Message& message);
// Parses a message; InvalidArgument if `bytes` is not exactly one well-formed message.
absl::StatusOr<Message> Read(absl::string_view bytes);

// Encodes a message as it goes over a connection: with its length before it.
std::string Frame(const Message& message);

}  // namespace tutti::comm
