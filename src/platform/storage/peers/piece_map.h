// PieceMap says which node of a gang fetches which piece of a list of objects from the store: piece
// k of the whole list is of node k mod n. A piece is a range of a large object, or a small object.
// All nodes that have the same list have the same map. Immutable; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "platform/storage/storage_request.h"

namespace tutti::storage {

class PieceMap {
 public:
  // `node` of `nodes` is this one's place among them.
  PieceMap(const std::vector<StoredObject>& objects, int64_t range_bytes, int node, int nodes)
      : range_bytes_(range_bytes), node_(node), nodes_(nodes) {
    for (const StoredObject& object : objects) {
      first_.push_back(count_);
      bytes_.push_back(object.bytes);
      count_ += std::max<int64_t>(1, (object.bytes + range_bytes - 1) / range_bytes);
    }
  }

  int64_t count() const { return count_; }
  int nodes() const { return nodes_; }
  int node() const { return node_; }
  // Returns the number of a range of an object; of a small one `range` is 0.
  int64_t PieceOf(size_t object, int64_t range) const { return first_[object] + range; }
  int OwnerOf(int64_t piece) const { return static_cast<int>(piece % nodes_); }
  bool IsOwn(int64_t piece) const { return OwnerOf(piece) == node_; }
  bool IsLarge(size_t object) const { return bytes_[object] > range_bytes_; }

  // Place is where a piece lies.
  struct Place {
    size_t object = 0;
    int64_t offset = 0, bytes = 0;
  };
  // `piece` is from 0 to count() - 1.
  Place PlaceOf(int64_t piece) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), piece);
    const auto object = static_cast<size_t>(after - first_.begin()) - 1;
    const int64_t offset = (piece - first_[object]) * range_bytes_;
    return {object, offset, std::min(range_bytes_, bytes_[object] - offset)};
  }

 private:
  const int64_t range_bytes_;
  const int node_, nodes_;
  int64_t count_ = 0;
  std::vector<int64_t> first_, bytes_;  // of each object: the number of its first piece, its size
};

}  // namespace tutti::storage
