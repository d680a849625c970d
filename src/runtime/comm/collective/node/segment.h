// Segment maps memory that several processes of one host share (transport/sealed_file.h).
#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace tutti::comm {

// The smallest: on aarch64 a page may have 16 or 64 KiB.
inline constexpr size_t kPageBytes = 4096;

class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Segment& operator=(Segment&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Segment();

  // Maps the whole of it, every page at once. InvalidArgument if it is not a sealed file of `size`
  // bytes (transport/sealed_file.h).
  static absl::StatusOr<Segment> Map(int file, size_t size);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Segment(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Puts a private view of `file`, which is mapped at `begin`, in its place: the content stays, and
// nobody else can change it any more. Writes of other threads meanwhile are not lost. The file's
// pages are given back.
absl::Status MakePrivate(std::byte* begin, size_t size, int file);

}  // namespace tutti::comm
