#include "platform/storage/peers/peer_client.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::storage {
namespace {

constexpr absl::Duration kBetweenTries = absl::Milliseconds(100);

}  // namespace

PeerClient::PeerClient(Peers peers, PeerSecret secret)
    : peers_(std::move(peers)),
      secret_(std::move(secret)),
      meet_until_(base::SteadyNow() + peers_.first_contact),
      nodes_(peers_.addresses.size()) {}

// Nodes do not begin at the same moment, and one may be at the input before this one.
absl::StatusOr<PeerStream> PeerClient::Connect(int node) {
  while (true) {
    absl::StatusOr<PeerStream> stream =
        PeerStream::Connect(peers_.addresses[static_cast<size_t>(node)], peers_.port);
    bool was_met;
    {
      absl::MutexLock lock(&mutex_);
      was_met = nodes_[static_cast<size_t>(node)].was_met;
    }
    absl::Status met = stream.status();
    if (met.ok()) met = stream->IntroduceAsAsker(peers_.node, secret_);
    if (met.ok()) return stream;
    if (was_met || base::SteadyNow() > meet_until_) return met;
    absl::SleepFor(kBetweenTries);
  }
}

absl::StatusOr<PeerStream> PeerClient::Take(int node) {
  {
    absl::MutexLock lock(&mutex_);
    Node& there = nodes_[static_cast<size_t>(node)];
    if (there.is_lost) return absl::UnavailableError("that node is asked no more");
    if (!there.idle.empty()) {
      PeerStream stream = std::move(there.idle.back());
      there.idle.pop_back();
      return stream;
    }
  }
  return Connect(node);
}

void PeerClient::Return(int node, PeerStream stream) {
  absl::MutexLock lock(&mutex_);
  nodes_[static_cast<size_t>(node)].was_met = true;
  nodes_[static_cast<size_t>(node)].idle.push_back(std::move(stream));
}

absl::Status PeerClient::Ask(PeerStream& stream, int64_t piece, const std::string& version,
                             std::span<char> out) {
  TUTTI_RETURN_IF_ERROR(stream.SendLine(absl::StrCat("get ", piece, " ", version)));
  std::string answer = "wait";
  while (answer == "wait") {
    TUTTI_ASSIGN_OR_RETURN(answer, stream.ReceiveLine());
  }
  if (answer == "no") return absl::NotFoundError("that node does not have it");
  const std::vector<std::string> words = absl::StrSplit(answer, ' ');
  size_t bytes = 0;
  if (words.size() != 3 || words[0] != "piece" || !absl::SimpleAtoi(words[2], &bytes) ||
      bytes != out.size()) {
    return absl::InvalidArgumentError("no answer to a request for a piece");
  }
  TUTTI_RETURN_IF_ERROR(stream.Receive(out));
  if (base::Hex(base::Sha256Of({out.data(), out.size()})) == words[1]) return absl::OkStatus();
  return absl::DataLossError("what has come is not what was sent");
}

absl::Status PeerClient::Fetch(int node, int64_t piece, const std::string& version,
                               std::span<char> out) {
  absl::StatusOr<PeerStream> stream = Take(node);
  absl::Status asked = stream.status();
  if (stream.ok()) asked = Ask(*stream, piece, version, out);
  if (asked.ok()) bytes_received_ += static_cast<int64_t>(out.size());
  // The node may have other pieces.
  if (asked.ok() || (stream.ok() && absl::IsNotFound(asked))) {
    Return(node, *std::move(stream));
    return asked;
  }
  absl::MutexLock lock(&mutex_);
  nodes_[static_cast<size_t>(node)].is_lost = true;
  return asked;
}

std::set<int> PeerClient::TellDone() {
  std::set<int> told;
  for (int node = 0; node < static_cast<int>(peers_.addresses.size()); ++node) {
    if (node == peers_.node) continue;
    absl::StatusOr<PeerStream> stream = Take(node);
    if (!stream.ok() || !stream->SendLine("done").ok()) continue;
    told.insert(node);
    Return(node, *std::move(stream));
  }
  return told;
}

}  // namespace tutti::storage
