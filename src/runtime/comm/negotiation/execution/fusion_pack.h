// Packs several parts of tensors into the fusion buffer as one, and unpacks them. Pure, save for
// the memory itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/comm/data_type.h"

namespace tutti::comm {

// One tensor on its way through an all-reduce or a broadcast.
struct Piece {
  const void* input = nullptr;  // null: nothing is brought (a rank that has joined)
  void* output = nullptr;       // null: nobody wants it
  size_t count = 0;
  DataType type = DataType::kFloat32;
  const std::string* name = nullptr;
  size_t bytes() const { return count * SizeOf(type); }
};

// Pieces of one type that are run as one.
struct Pack {
  std::vector<Piece> pieces;
  size_t bytes = 0;
  size_t count() const { return bytes / SizeOf(pieces[0].type); }
};

// Puts pieces into packs of at most `most` bytes, of one type each. Those from kWorthAlone on are
// alone, and all if `alone`. Empty pieces are left out. Depends on the sizes and types only.
std::vector<Pack> PackPieces(const std::vector<Piece>& pieces, size_t most, bool alone);

}  // namespace tutti::comm
