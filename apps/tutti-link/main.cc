// The program `tutti-link`: what the transport of trainings carries from each of several machines
// to the next, in a ring. `tutti cluster check` sends it to machines and reads what it prints:
//
//   tutti-link pack FILE                   itself with its libraries
//   (base/process/packed_program.h) tutti-link measure INDEX ADDRESS…      on machine INDEX (from
//   0) of those; they share a secret,
//                                          TUTTI_JOB_TOKEN. Prints one line of JSON:
//     {"megabytes_per_second": 1171.2, "microseconds": 21.5}    to the next, a one-way message
//
// Links are measured in two or three turns, so that no machine has two at once. Each link is a
// group of its own: one that fails is told of by its own two ends.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/process/packed_program.h"
#include "base/status.h"
#include "runtime/comm/communicator.h"

namespace tutti {
namespace {

constexpr int kPort = 6830;
constexpr size_t kBlock = 4 << 20;
constexpr int kEchoes = 200;
constexpr absl::Duration kMeasured = absl::Milliseconds(500);
constexpr absl::Duration kMeeting =
    absl::Seconds(20);  // also while others are at a link that fails
constexpr absl::Duration kLimit = absl::Seconds(15);

struct Measure {
  double megabytes_per_second = 0;
  double microseconds = 0;
};

absl::StatusOr<std::unique_ptr<comm::Communicator>> Meet(const std::vector<std::string>& addresses,
                                                         size_t from, bool sends, int turn) {
  comm::GroupOptions options;
  options.rank = options.node = sends ? 0 : 1;
  options.size = 2;
  options.address = addresses[sends ? from : (from + 1) % addresses.size()];
  options.master_address = addresses[from];
  options.master_port = kPort;
  options.connect_timeout = kMeeting * (turn + 1);
  if (const char* token = std::getenv("TUTTI_JOB_TOKEN")) options.token = token;
  return comm::JoinGroup(options);
}

// Blocks as long as the first byte before each says that one follows, then echoes.
absl::Status Answer(comm::Communicator& group) {
  const auto deadline = base::Deadline::After(kLimit);
  std::vector<char> block(kBlock);
  for (char more = 1; more != 0;) {
    TUTTI_RETURN_IF_ERROR(group.Receive(&more, 1, 0, deadline));
    if (more != 0) TUTTI_RETURN_IF_ERROR(group.Receive(block.data(), kBlock, 0, deadline));
  }
  for (int i = 0; i < 1 + kEchoes; ++i) {  // the first: all has come
    if (i > 0) TUTTI_RETURN_IF_ERROR(group.Receive(block.data(), 1, 0, deadline));
    TUTTI_RETURN_IF_ERROR(group.Send(block.data(), 1, 0, deadline));
  }
  return absl::OkStatus();
}

absl::StatusOr<Measure> Send(comm::Communicator& group) {
  const auto deadline = base::Deadline::After(kLimit);
  const std::vector<char> block(kBlock);
  char more = 1, echo = 0;
  size_t sent = 0;
  const auto send = [&]() -> absl::Status {
    TUTTI_RETURN_IF_ERROR(group.Send(&more, 1, 1, deadline));
    return group.Send(block.data(), kBlock, 1, deadline);
  };
  TUTTI_RETURN_IF_ERROR(send());  // not counted: connections grow into their speed
  const absl::Duration begun = base::SteadyNow();
  for (; base::SteadyNow() - begun < kMeasured; sent += kBlock) TUTTI_RETURN_IF_ERROR(send());
  more = 0;
  TUTTI_RETURN_IF_ERROR(group.Send(&more, 1, 1, deadline));
  TUTTI_RETURN_IF_ERROR(group.Receive(&echo, 1, 1, deadline));
  Measure measure;
  measure.megabytes_per_second =
      static_cast<double>(sent) / 1e6 / absl::ToDoubleSeconds(base::SteadyNow() - begun);
  const absl::Duration echoes = base::SteadyNow();
  for (int i = 0; i < kEchoes; ++i) {
    TUTTI_RETURN_IF_ERROR(group.Send(&echo, 1, 1, deadline));
    TUTTI_RETURN_IF_ERROR(group.Receive(&echo, 1, 1, deadline));
  }
  measure.microseconds = absl::ToDoubleMicroseconds(base::SteadyNow() - echoes) / (2 * kEchoes);
  return measure;
}

// Returns whose turn a machine has: 0 is for even ones, 1 for odd ones, 2 for the last of an odd
// ring.
int TurnOf(size_t from, size_t count) {
  return count % 2 == 1 && from == count - 1 ? 2 : static_cast<int>(from % 2);
}

absl::StatusOr<Measure> MeasureRing(const std::vector<std::string>& addresses, size_t index) {
  const size_t count = addresses.size();
  absl::StatusOr<Measure> own = absl::UnknownError("not measured");
  for (int turn = 0; turn < 3; ++turn) {
    const size_t previous = (index + count - 1) % count;
    if (TurnOf(index, count) == turn) {
      const auto group = Meet(addresses, index, true, turn);
      own = group.ok() ? Send(**group)
                       : base::Annotate(group.status(),
                                        absl::StrCat("to ", addresses[(index + 1) % count]));
    } else if (TurnOf(previous, count) == turn) {
      // The other end reports what fails here.
      if (const auto group = Meet(addresses, previous, false, turn); group.ok()) {
        Answer(**group).IgnoreError();
      }
    }
  }
  return own;
}

absl::Status Run(const std::vector<std::string>& words) {
  size_t index = 0;
  if (words.size() == 2 && words[0] == "pack") {
    TUTTI_ASSIGN_OR_RETURN(const auto parts, base::PartsOfThisProgram("tutti-link"));
    return base::PackProgram(parts, words[1]);
  }
  if (words.size() < 4 || words[0] != "measure" || !absl::SimpleAtoi(words[1], &index) ||
      index >= words.size() - 2) {
    return absl::InvalidArgumentError("tutti-link pack FILE | measure INDEX ADDRESS ADDRESS…");
  }
  TUTTI_ASSIGN_OR_RETURN(const Measure measure,
                         MeasureRing({words.begin() + 2, words.end()}, index));
  const nlohmann::json line = {{"megabytes_per_second", measure.megabytes_per_second},
                               {"microseconds", measure.microseconds}};
  std::printf("%s\n", line.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  tutti::base::StartLogging("error");
  const absl::Status status = tutti::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
