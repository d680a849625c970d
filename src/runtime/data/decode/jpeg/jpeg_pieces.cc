#include "runtime/data/decode/jpeg/jpeg_pieces.h"

#include <algorithm>
#include <cstring>

namespace tutti::data {
namespace {

constexpr uint8_t kStartOfFrame = 0xC0, kExtendedFrame = 0xC1, kStartOfScan = 0xDA, kEnd = 0xD9,
                  kRestartInterval = 0xDD, kFirstRestart = 0xD0, kJfif = 0xE0, kAdobe = 0xEE,
                  kLastApplication = 0xEF, kComment = 0xFE;

int BigEndian16(absl::string_view bytes, size_t at) {
  return static_cast<uint8_t>(bytes[at]) << 8 | static_cast<uint8_t>(bytes[at + 1]);
}

bool IsRestart(uint8_t marker) { return marker >= kFirstRestart && marker < kFirstRestart + 8; }

void PutBigEndian16(std::string& bytes, size_t at, int value) {
  bytes[at] = static_cast<char>(value >> 8);
  bytes[at + 1] = static_cast<char>(value);
}

}  // namespace

// Sizes and sampling, of a segment's bytes after its length.
bool JpegPieces::ReadFrame(absl::string_view frame) {
  if (frame.size() < 6 || frame[0] != 8) return false;
  const auto components = static_cast<size_t>(frame[5]);
  if ((components != 1 && components != 3) || frame.size() != 6 + 3 * components) return false;
  size_ = {BigEndian16(frame, 3), BigEndian16(frame, 1)};
  int across = 0, down = 0;
  for (size_t c = 0; c < components; ++c) {
    across = std::max(across, static_cast<uint8_t>(frame[7 + 3 * c]) >> 4);
    down = std::max(down, frame[7 + 3 * c] & 15);
  }
  if (size_.width == 0 || size_.height == 0 || across < 1 || across > 4 || down < 1 || down > 4 ||
      (components == 1 && (across != 1 || down != 1))) {
    return false;
  }
  block_ = {8 * across, 8 * down};
  units_ = (size_.width + block_.width - 1) / block_.width;
  return true;
}

bool JpegPieces::Open(absl::string_view jpeg) {
  jpeg_ = jpeg;
  interval_ = units_ = 0;
  ends_.clear();
  header_.assign("\xff\xd8");
  size_t at = 2;
  while (at + 4 <= jpeg.size() && jpeg[at] == '\xff') {
    const auto marker = static_cast<uint8_t>(jpeg[at + 1]);
    const auto length = static_cast<size_t>(BigEndian16(jpeg, at + 2));
    if (length < 2 || at + 2 + length > jpeg.size()) return false;
    const absl::string_view segment = jpeg.substr(at + 4, length - 2);
    const bool frame = marker == kStartOfFrame || marker == kExtendedFrame;
    if (frame && (units_ != 0 || !ReadFrame(segment))) return false;
    if (marker > kExtendedFrame && marker < 0xD0 && marker != 0xC4) return false;  // other frames
    if (marker == kRestartInterval && segment.size() == 2) interval_ = BigEndian16(segment, 0);
    if (frame) frame_ = header_.size() + 5;
    const bool told = marker >= kJfif && marker <= kLastApplication;
    if (marker != kComment && (!told || marker == kJfif || marker == kAdobe)) {
      header_.append(jpeg.data() + at, 2 + length);
    }
    at += 2 + length;
    if (marker != kStartOfScan) continue;
    scan_ = jpeg.substr(at);
    // All components in this one scan; a row of units is a whole number of pieces.
    return units_ > 0 && interval_ > 0 && units_ % interval_ == 0 && !segment.empty() &&
           static_cast<size_t>(segment[0]) == (header_[frame_ + 4] == 1 ? 1u : 3u);
  }
  return false;
}

Region JpegPieces::Around(const Region& region) const {
  const int width = block_.width * interval_, height = block_.height;
  const int left = region.left / width * width, top = region.top / height * height;
  const auto up = [](int value, int step) { return (value + step - 1) / step * step; };
  const int right = std::min(size_.width, up(region.left + region.width, width));
  const int bottom = std::min(size_.height, up(region.top + region.height, height));
  return {left, top, right - left, bottom - top};
}

// Finds the ends of the first `count` pieces: their markers count in the order 0 to 7.
bool JpegPieces::FindPieces(size_t count) {
  size_t at = ends_.empty() ? 0 : ends_.back() + 2;
  while (ends_.size() < count) {
    const void* found =
        at < scan_.size() ? std::memchr(scan_.data() + at, 0xFF, scan_.size() - at) : nullptr;
    if (found == nullptr) return false;
    at = static_cast<size_t>(static_cast<const char*>(found) - scan_.data());
    if (at + 1 >= scan_.size()) return false;
    const auto marker = static_cast<uint8_t>(scan_[at + 1]);
    if (marker != 0) {
      const bool next = marker == kFirstRestart + ends_.size() % 8;
      if (!next && (IsRestart(marker) || ends_.size() + 1 < count)) return false;
      ends_.push_back(at);
      if (marker == kEnd) return ends_.size() == count;
    }
    at += 2;
  }
  return true;
}

absl::string_view JpegPieces::Cut(const Region& pieces) {
  const int in_a_row = units_ / interval_, width = block_.width * interval_;
  const int left = pieces.left / width, right = (pieces.left + pieces.width + width - 1) / width;
  const int top = pieces.top / block_.height;
  const int bottom = (pieces.top + pieces.height + block_.height - 1) / block_.height;
  if (!FindPieces(static_cast<size_t>((bottom - 1) * in_a_row + right))) return {};
  cut_ = header_;
  PutBigEndian16(cut_, frame_, pieces.height);
  PutBigEndian16(cut_, frame_ + 2, pieces.width);
  int number = 0;
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x, ++number) {
      const auto piece = static_cast<size_t>(y * in_a_row + x);
      const size_t begin = piece == 0 ? 0 : ends_[piece - 1] + 2;
      if (number > 0) {
        cut_ += '\xff';
        cut_ += static_cast<char>(kFirstRestart + (number - 1) % 8);
      }
      cut_.append(scan_.data() + begin, ends_[piece] - begin);
    }
  }
  cut_ += '\xff';
  cut_ += static_cast<char>(kEnd);
  return cut_;
}

}  // namespace tutti::data
