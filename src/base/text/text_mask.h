// TextMask hides texts, such as the values of secrets, in bytes that pass: each run of bytes that
// belong to an occurrence of one becomes "***". It is an automaton of all texts at once (Aho and
// Corasick, 1975), so that the time that bytes take does not depend on how many texts there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::base {

// Bytes that a value must have to be hidden: a shorter one would hide half of any output.
inline constexpr size_t kLeastHidden = 4;

// Returns what is hidden where a value with `kLeastHidden` bytes is: itself; of several lines each
// with 8 bytes or more; what it becomes in JSON, in an address (RFC 3986, also where "/" stays) and
// in base64 (RFC 4648, both alphabets), there also behind other bytes and in lines of 64 or 76, if
// that has 8 bytes or more. A newline at its end does not count. None of a shorter one.
std::vector<std::string> TextsToHide(absl::string_view value);

// Immutable; thread-safe. Takes some 20 bytes of memory for each byte of the texts.
class TextMask {
 public:
  // Empty texts hide nothing.
  explicit TextMask(const std::vector<std::string>& texts);
  // Returns one that hides every byte but newlines, for output of which the secrets are not known.
  static TextMask OfEverything();

  // Returns `bytes`, which are whole, with what is to be hidden replaced.
  std::string Hide(absl::string_view bytes) const;
  // Does the same with "*" for each hidden byte, so that offsets stay. What may be the beginning of
  // a text at the end of `bytes` is hidden too, and this returns how many bytes that is: where more
  // bytes come, they may turn out to be none. Linear.
  size_t HideInPlace(std::string& bytes) const;
  // Returns the bytes of the longest text.
  size_t longest() const { return longest_; }

 private:
  friend class MaskedStream;
  using State = uint32_t;

  struct Node {
    State first_child = 0, sibling = 0;  // 0: none; the root is nobody's child
    State fail = 0;                      // the longest other beginning of a text that ends here
    uint32_t depth = 0;                  // bytes of the beginning that this is
    uint32_t match = 0;                  // of the longest text that ends here; 0: none does
    unsigned char byte = 0;
  };
  TextMask() = default;
  void Add(absl::string_view text);
  void LinkFailures();
  State Child(State state, unsigned char byte) const;
  State Next(State state, unsigned char byte) const;
  bool begins(char byte) const { return first_[static_cast<unsigned char>(byte)] != 0; }

  std::vector<Node> nodes_ = {Node{}};
  std::array<State, 256> first_ = {};  // the root's children
  size_t longest_ = 0;
  bool everything_ = false;
};

// Hides in bytes that come in pieces, wherever they are cut. What may yet become an occurrence is
// held back, and nothing else, so that output is not delayed. Not thread-safe.
class MaskedStream {
 public:
  // `mask` outlives the object.
  explicit MaskedStream(const TextMask* mask) : mask_(mask) {}

  // Appends to `out` what can be told of `bytes` and of those before them.
  void Push(absl::string_view bytes, std::string& out);
  // Ends the stream: no more come. Of what was held back, 8 bytes or more of the beginning of a
  // text are hidden.
  void Finish(std::string& out);

 private:
  using Range = std::pair<uint64_t, uint64_t>;  // from, to; counted from the stream's first byte

  void Cover(uint64_t length);
  // Appends all but the last `kept` bytes.
  void Release(uint64_t kept, std::string& out);

  const TextMask* mask_;
  TextMask::State state_ = 0;
  std::string held_;  // from `released_` on, behind what `gone_` bytes are left of
  size_t gone_ = 0;
  uint64_t released_ = 0;      // bytes of the stream that have been told
  uint64_t taken_ = 0;         // and that have come
  std::deque<Range> covered_;  // of those that are held, ascending
  bool in_run_ = false;        // the last byte that was told is hidden
};

}  // namespace tutti::base
