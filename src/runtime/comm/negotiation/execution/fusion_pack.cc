#include "runtime/comm/negotiation/execution/fusion_pack.h"

#include <algorithm>

#include "runtime/comm/negotiation/coordination/fuse.h"

namespace tutti::comm {

std::vector<Pack> PackPieces(const std::vector<Piece>& pieces, size_t most, bool alone) {
  std::vector<Pack> packs;
  for (const Piece& piece : pieces) {
    const size_t bytes = piece.bytes();
    if (bytes == 0) continue;
    const bool single = alone || bytes >= kWorthAlone;
    const auto takes = [&](const Pack& pack) {
      return pack.pieces[0].type == piece.type && pack.pieces[0].bytes() < kWorthAlone &&
             pack.bytes + bytes <= most;
    };
    auto pack = single ? packs.end() : std::find_if(packs.begin(), packs.end(), takes);
    if (pack == packs.end()) pack = packs.insert(pack, Pack{});
    pack->pieces.push_back(piece);
    pack->bytes += bytes;
  }
  return packs;
}

}  // namespace tutti::comm
