// Writer and Reader turn messages into bytes and back: fields in order, integers little-endian,
// texts with a 16-bit and lists with a 32-bit length. A message type is described once, by a
// function over either of these two, so that its writer and its reader cannot differ:
//
//   template <typename Codec>
//   void Describe(Codec& codec, Link& link) { codec.Text(link.group); codec.Number(link.to, 0, 9);
//   }
//
// The reader takes hostile bytes: it allocates for what is really there and never for a length
// alone. Not thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::comm {

inline constexpr size_t kLongestText = 512;
inline constexpr int kMostRanks = 1 << 16;

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
  // Longer texts are cut; `longest` is less than 64 Ki.
  void Text(std::string& value, size_t longest = kLongestText) {
    const size_t length = std::min(value.size(), longest);
    Integer<uint16_t>(static_cast<uint16_t>(length));
    bytes_.append(value, 0, length);
  }
  void Bytes(std::string& value, size_t) {
    Integer<uint32_t>(static_cast<uint32_t>(value.size()));
    bytes_ += value;
  }
  void Real(double& value) { Integer<uint64_t>(std::bit_cast<uint64_t>(value)); }
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
    if (value >= least && value <= most) return;
    value = least;
    Fail();
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
  void Text(std::string& value, size_t longest = kLongestText) {
    Take(value, Integer<uint16_t>(), longest);
  }
  void Bytes(std::string& value, size_t longest) { Take(value, Integer<uint32_t>(), longest); }
  void Real(double& value) { value = std::bit_cast<double>(Integer<uint64_t>()); }
  template <typename T, typename F>
  void List(std::vector<T>& values, F&& each) {
    const uint32_t count = Integer<uint32_t>();
    if (count > static_cast<uint32_t>(kMostRanks)) Fail();
    // Grows as elements are really there: a length alone must not make us allocate.
    for (uint32_t i = 0; i < count && ok(); ++i) each(values.emplace_back());
  }
  bool ok() const { return !failed_; }
  bool at_end() const { return bytes_.empty(); }

  void Fail() {
    failed_ = true;
    bytes_ = {};
  }

 private:
  void Take(std::string& value, size_t length, size_t longest) {
    if (length > longest || length > bytes_.size()) return Fail();
    value = std::string(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
  }

  absl::string_view bytes_;
  bool failed_ = false;
};

}  // namespace tutti::comm
