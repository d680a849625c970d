#include "base/text/text_mask.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/text/percent_encode.h"

namespace tutti::base {
namespace {

constexpr char kHidden[] = "***";
constexpr size_t kLeastPart = 8;  // bytes of a line, of another form, or of a beginning

char HexDigit(unsigned value) { return "0123456789abcdef"[value & 15]; }

std::string InJson(absl::string_view value) {
  std::string text;
  for (const char c : value) {
    static constexpr absl::string_view kNamed = "\"\\\b\f\n\r\t", kNames = "\"\\bfnrt";
    if (const size_t at = kNamed.find(c); at != absl::string_view::npos) {
      text += '\\';
      text += kNames[at];
    } else if (absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != 0x7f) {
      text += "\\u00";
      text += HexDigit(static_cast<unsigned char>(c) >> 4);
      text += HexDigit(static_cast<unsigned char>(c));
    } else {
      text += c;
    }
  }
  return text;
}

// The digits that say nothing but `value`, where `before` bytes stand before it in what is encoded.
std::string InBase64(absl::string_view value, size_t before, bool of_addresses) {
  const std::string bytes = std::string(before, '\0') + std::string(value);
  const std::string all =
      of_addresses ? absl::WebSafeBase64Escape(bytes) : absl::Base64Escape(bytes);
  const size_t first = (before * 8 + 5) / 6;
  return all.substr(first, bytes.size() * 8 / 6 - first);
}

// As programs write long base64.
std::string InLines(absl::string_view text, size_t digits) {
  std::string lines;
  for (size_t at = 0; at < text.size(); at += digits) {
    absl::StrAppend(&lines, at == 0 ? "" : "\n", text.substr(at, digits));
  }
  return lines;
}

}  // namespace

std::vector<std::string> TextsToHide(absl::string_view value) {
  absl::ConsumeSuffix(&value, "\n");
  absl::ConsumeSuffix(&value, "\r");
  if (value.size() < kLeastHidden) return {};
  std::vector<std::string> texts = {std::string(value)};
  const auto add = [&](std::string text) {
    const bool is_new = std::find(texts.begin(), texts.end(), text) == texts.end();
    if (text.size() >= kLeastPart && is_new) texts.push_back(std::move(text));
  };
  if (absl::StrContains(value, "\n")) {
    for (const absl::string_view line : absl::StrSplit(value, '\n')) {
      add(std::string(absl::StripAsciiWhitespace(line)));
    }
  }
  add(InJson(value));
  for (const bool keep_slash : {false, true}) add(PercentEncode(value, keep_slash));
  for (const size_t before : {0, 1, 2}) {
    for (const bool of_addresses : {false, true}) add(InBase64(value, before, of_addresses));
  }
  for (const size_t digits : {64, 76}) add(InLines(InBase64(value, 0, false), digits));
  return texts;
}

TextMask::TextMask(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) Add(text);
  LinkFailures();
}

TextMask TextMask::OfEverything() {
  TextMask mask;
  mask.everything_ = true;
  return mask;
}

TextMask::State TextMask::Child(State state, unsigned char byte) const {
  if (state == 0) return first_[byte];
  State child = nodes_[state].first_child;
  while (child != 0 && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

void TextMask::Add(absl::string_view text) {
  State state = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    State child = Child(state, byte);
    if (child == 0) {
      child = static_cast<State>(nodes_.size());
      nodes_.push_back(
          {.sibling = nodes_[state].first_child, .depth = nodes_[state].depth + 1, .byte = byte});
      nodes_[state].first_child = child;
      if (state == 0) first_[byte] = child;
    }
    state = child;
  }
  nodes_[state].match = nodes_[state].depth;
  longest_ = std::max(longest_, text.size());
}

// Goes by depth, since the node that a node fails to is less deep.
void TextMask::LinkFailures() {
  std::deque<State> waiting = {0};
  while (!waiting.empty()) {
    const State state = waiting.front();
    waiting.pop_front();
    for (State child = nodes_[state].first_child; child != 0; child = nodes_[child].sibling) {
      waiting.push_back(child);
      if (state != 0) nodes_[child].fail = Next(nodes_[state].fail, nodes_[child].byte);
      if (nodes_[child].match == 0) nodes_[child].match = nodes_[nodes_[child].fail].match;
    }
  }
}

TextMask::State TextMask::Next(State state, unsigned char byte) const {
  while (true) {
    const State child = Child(state, byte);
    if (child != 0 || state == 0) return child;
    state = nodes_[state].fail;
  }
}

std::string TextMask::Hide(absl::string_view bytes) const {
  std::string out;
  MaskedStream stream(this);
  stream.Push(bytes, out);
  stream.Finish(out);
  return out;
}

size_t TextMask::HideInPlace(std::string& bytes) const {
  if (everything_) {
    std::replace_if(
        bytes.begin(), bytes.end(), [](char c) { return c != '\n'; }, '*');
    return 0;
  }
  // The ranges that are hidden may grow at both ends; each byte of them is written once.
  std::vector<std::pair<size_t, size_t>> hidden;
  const auto hide = [&](size_t from, size_t to) {
    while (!hidden.empty() && hidden.back().second >= from) {
      from = std::min(from, hidden.back().first);
      hidden.pop_back();
    }
    hidden.emplace_back(from, to);
  };
  State state = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    state = Next(state, static_cast<unsigned char>(bytes[i]));
    if (nodes_[state].match > 0) hide(i + 1 - nodes_[state].match, i + 1);
  }
  // Only an end of a text that is whole may be the beginning of another.
  while (state != 0 && nodes_[state].first_child == 0) state = nodes_[state].fail;
  const size_t open = nodes_[state].depth;
  if (open > 0) hide(bytes.size() - open, bytes.size());
  for (const auto& [from, to] : hidden) std::fill(bytes.begin() + from, bytes.begin() + to, '*');
  return open;
}

void MaskedStream::Push(absl::string_view bytes, std::string& out) {
  if (mask_->everything_) {
    std::string all(bytes);
    mask_->HideInPlace(all);
    out += all;
    return;
  }
  size_t i = 0;
  while (i < bytes.size()) {
    if (state_ == 0) {  // nothing is held back
      const auto* const next =
          std::find_if(bytes.begin() + i, bytes.end(), [this](char c) { return mask_->begins(c); });
      const size_t end = static_cast<size_t>(next - bytes.begin());
      if (end > i) in_run_ = false;
      out.append(bytes.data() + i, end - i);
      taken_ += end - i;
      released_ = taken_;
      i = end;
      if (i == bytes.size()) return;
    }
    held_ += bytes[i];
    ++taken_;
    state_ = mask_->Next(state_, static_cast<unsigned char>(bytes[i]));
    ++i;
    if (const uint32_t match = mask_->nodes_[state_].match; match > 0) Cover(match);
    // Only an end of a text that is whole may be the beginning of another.
    while (state_ != 0 && mask_->nodes_[state_].first_child == 0)
      state_ = mask_->nodes_[state_].fail;
    Release(mask_->nodes_[state_].depth, out);
  }
}

void MaskedStream::Finish(std::string& out) {
  const TextMask::Node& node = mask_->nodes_[state_];
  if (node.depth >= kLeastPart) Cover(node.depth);
  Release(0, out);
  state_ = 0;
}

void MaskedStream::Cover(uint64_t length) {
  uint64_t from = taken_ - length;
  while (!covered_.empty() && covered_.back().second >= from) {
    from = std::min(from, covered_.back().first);
    covered_.pop_back();
  }
  covered_.emplace_back(from, taken_);
}

void MaskedStream::Release(uint64_t kept, std::string& out) {
  const uint64_t end = taken_ - kept;
  while (released_ < end) {
    const bool is_hidden = !covered_.empty() && covered_.front().first <= released_;
    uint64_t to = end;
    if (is_hidden) {
      to = std::min(end, covered_.front().second);
      if (!in_run_) out += kHidden;
      if (to == covered_.front().second) covered_.pop_front();
    } else {
      if (!covered_.empty()) to = std::min(end, covered_.front().first);
      out.append(held_, gone_, to - released_);
    }
    in_run_ = is_hidden;
    gone_ += to - released_;
    released_ = to;
  }
  // Each byte is moved once on the average.
  if (gone_ * 2 >= held_.size()) {
    held_.erase(0, gone_);
    gone_ = 0;
  }
}

}  // namespace tutti::base
