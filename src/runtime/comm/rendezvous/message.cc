#include "runtime/comm/rendezvous/message.h"

#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

// Fields go through one description (Describe below) for both directions, so that the writer and
// the reader cannot differ.
class Writer {
 public:
  template <typename T>
  void Integer(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_ += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
    }
  }
  void Number(int& value, int, int) { Integer<uint32_t>(static_cast<uint32_t>(value)); }
  void Count(uint64_t& value) { Integer<uint64_t>(value); }
  void Flag(bool& value) { Integer<uint8_t>(value ? 1 : 0); }
  template <typename E>
  void Choice(E& value, E) {
    Integer<uint8_t>(static_cast<uint8_t>(value));
  }
  void Text(std::string& value) {
    const size_t length = std::min(value.size(), kLongestText);
    Integer<uint16_t>(static_cast<uint16_t>(length));
    bytes_.append(value, 0, length);
  }
  template <typename T, typename F>
  void List(std::vector<T>& values, F&& each) {
    Integer<uint32_t>(static_cast<uint32_t>(values.size()));
    for (T& value : values) each(value);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Stops at the first fault; values read after it are zero.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Integer() {
    if (bytes_.size() < sizeof(T)) return Fail(), T{0};
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[i])) << (8 * i);
    }
    bytes_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }
  void Number(int& value, int least, int most) {
    value = static_cast<int>(Integer<uint32_t>());
    if (value < least || value > most) Fail();
  }
  void Count(uint64_t& value) { value = Integer<uint64_t>(); }
  void Flag(bool& value) {
    const uint8_t byte = Integer<uint8_t>();
    if (byte > 1) Fail();
    value = byte == 1;
  }
  template <typename E>
  void Choice(E& value, E last) {
    const uint8_t byte = Integer<uint8_t>();
    if (byte > static_cast<uint8_t>(last)) return Fail();
    value = static_cast<E>(byte);
  }
  void Text(std::string& value) {
    const size_t length = Integer<uint16_t>();
    if (length > kLongestText || length > bytes_.size()) return Fail();
    value = std::string(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
  }
  template <typename T, typename F>
  void List(std::vector<T>& values, F&& each) {
    const uint32_t count = Integer<uint32_t>();
    // Grows as elements are really there: a length alone must not make us allocate.
    for (uint32_t i = 0; i < count && ok(); ++i) each(values.emplace_back());
    if (count > static_cast<uint32_t>(kMostRanks)) Fail();
  }
  bool ok() const { return !failed_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  void Fail() {
    failed_ = true;
    bytes_ = {};
  }
  absl::string_view bytes_;
  bool failed_ = false;
};

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
}
template <typename Codec>
void Describe(Codec& codec, Table& table) {
  codec.Text(table.group);
  codec.List(table.ranks, [&](Hello& hello) { Describe(codec, hello); });
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
}
template <typename Codec>
void Describe(Codec& codec, Query& query) {
  codec.Count(query.until);
}
template <typename Codec>
void Describe(Codec& codec, Accusation& accusation) {
  Rank(codec, accusation.rank);
  codec.Choice(accusation.reason, Reason::kPeerLate);
}
template <typename Codec>
void Describe(Codec& codec, Departure& departure) {
  Rank(codec, departure.rank);
  codec.Flag(departure.clean);
  codec.Count(departure.finished);
  Code(codec, departure.code);
  codec.Text(departure.text);
}
template <typename Codec>
void Describe(Codec& codec, Goodbye& goodbye) {
  codec.Count(goodbye.finished);
}
template <typename Codec>
void Describe(Codec&, Farewell&) {}

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
