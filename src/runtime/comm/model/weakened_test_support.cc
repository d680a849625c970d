#include "runtime/comm/model/weakened_test_support.h"

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace tutti::comm {
namespace {

std::vector<std::memory_order> Weaker(OrderPlace::Kind kind, std::memory_order order) {
  switch (order) {
    case std::memory_order_seq_cst:
      if (kind == OrderPlace::Kind::kLoad) return {std::memory_order_acquire};
      if (kind == OrderPlace::Kind::kStore) return {std::memory_order_release};
      return {std::memory_order_acq_rel};
    case std::memory_order_acq_rel:
      return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_acquire:
    case std::memory_order_release:
      return {std::memory_order_relaxed};
    default:
      return {};
  }
}

const char* NameOfOrder(std::memory_order order) {
  switch (order) {
    case std::memory_order_seq_cst:
      return "seq_cst";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    default:
      return "relaxed";
  }
}

const char* NameOfAccess(OrderPlace::Kind kind) {
  switch (kind) {
    case OrderPlace::Kind::kLoad:
      return "load";
    case OrderPlace::Kind::kStore:
      return "store";
    case OrderPlace::Kind::kUpdate:
      return "update";
    default:
      return "fence";
  }
}

}  // namespace

OrderCheck WeakenEach(const ExploreProtocol& explore) {
  OrderCheck check;
  for (const OrderPlace& place : explore({}).orders) {
    for (const std::memory_order order : Weaker(place.kind, place.order)) {
      ++check.tried;
      if (!explore(WeakenedOrder{place, order}).failure.empty()) continue;
      check.not_needed.push_back(
          absl::StrCat(place.file, ":", place.line, " ", NameOfAccess(place.kind), ": ",
                       NameOfOrder(place.order), ", ", NameOfOrder(order), " would do"));
    }
  }
  return check;
}

void PrintCounts(const std::string& what, const Interleavings::Result& result) {
  std::printf("%s: %zu states, %zu runs\n", what.c_str(), result.states, result.runs);
}

}  // namespace tutti::comm
