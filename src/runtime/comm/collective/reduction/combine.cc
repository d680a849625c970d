#include "runtime/comm/collective/reduction/combine.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/comm/collective/reduction/reduce_operation.h"

namespace tutti::comm {
namespace {

// Elements that are reduced at once, in the first-level cache.
constexpr size_t kStrip = 512;
// In bytes, where the data come from memory: as much is reduced at once, and as much again is asked
// for ahead of it. The processor's own prefetching does not suffice where several inputs are read
// and written at the same time, and it takes few requests at once (docs/decisions/010).
constexpr size_t kAhead = 256;
// Up to here the data are taken to be in a cache already.
constexpr size_t kCached = 512 << 10;

struct Job {
  ReduceOp op;
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  size_t count;
  int divisor;  // 0: none
};

struct MeanOfTwo {
  template <typename T>
  TUTTI_INLINE T operator()(T a, T b) const {
    return MeanOf(Sum()(a, b), 2);
  }
};

template <typename Element>
TUTTI_INLINE typename Element::Value At(const std::byte* input, size_t i) {
  typename Element::Stored stored;
  std::memcpy(&stored, input + i * sizeof(stored), sizeof(stored));
  return Element::Load(stored);
}

template <typename Value, typename A, typename B, typename Op>
TUTTI_INLINE void Each(Value* values, size_t n, const A& a, const B& b, Op op) {
  for (size_t i = 0; i < n; ++i) values[i] = op(a(i), b(i));
}

// values[i] = a(i) op b(i).
template <typename Value, typename A, typename B>
TUTTI_INLINE void Apply(ReduceOp op, Value* values, size_t n, const A& a, const B& b) {
  switch (op) {
    case ReduceOp::kMean:
    case ReduceOp::kSum:
      return Each(values, n, a, b, Sum());
    case ReduceOp::kMin:
      return Each(values, n, a, b, Min());
    case ReduceOp::kMax:
      return Each(values, n, a, b, Max());
    case ReduceOp::kProduct:
      return Each(values, n, a, b, Product());
    case ReduceOp::kAdasum:  // not element by element: adasum.h
      return;
  }
}

template <typename Value>
TUTTI_INLINE void Divide(Value* values, size_t n, int divisor) {
  for (size_t i = 0; i < n; ++i) values[i] = MeanOf(values[i], divisor);
}

template <typename Stored>
TUTTI_INLINE void CopyOut(const Job& job, size_t offset, const Stored* results, size_t n) {
  for (std::byte* const output : job.outputs) {
    std::byte* const at = output + offset;
    for (size_t i = 0; i < n; ++i)
      std::memcpy(at + i * sizeof(Stored), &results[i], sizeof(Stored));
  }
}

// Two inputs, which is the commonest case: straight from them to the outputs, at most two. An
// output that is an input is so at the same place.
template <typename Element, typename Op>
TUTTI_INLINE void Pair(const Job& job, size_t offset, size_t n, Op op) {
  using Value = typename Element::Value;
  const std::byte* const a = job.inputs[0] + offset;
  const std::byte* const b = job.inputs[1] + offset;
  std::byte* const x = job.outputs.front() + offset;
  std::byte* const y = job.outputs.back() + offset;
  TUTTI_INDEPENDENT_TURNS
  for (size_t i = 0; i < n; ++i) {
    const Value value = op(At<Element>(a, i), At<Element>(b, i));
    std::memcpy(x + i * sizeof(Value), &value, sizeof(Value));
    std::memcpy(y + i * sizeof(Value), &value, sizeof(Value));
  }
}

template <typename Element>
TUTTI_INLINE void PairOfPlain(const Job& job, size_t offset, size_t n) {
  switch (job.op) {
    case ReduceOp::kMean:
    case ReduceOp::kSum:
      if (job.divisor == 2) return Pair<Element>(job, offset, n, MeanOfTwo());
      return Pair<Element>(job, offset, n, Sum());
    case ReduceOp::kMin:
      return Pair<Element>(job, offset, n, Min());
    case ReduceOp::kMax:
      return Pair<Element>(job, offset, n, Max());
    case ReduceOp::kProduct:
      return Pair<Element>(job, offset, n, Product());
    case ReduceOp::kAdasum:
      return;
  }
}

// Elements that are calculated with as they are stored.
template <typename Element>
TUTTI_INLINE void StripOfPlain(const Job& job, size_t offset, size_t n) {
  using Value = typename Element::Value;
  alignas(64) Value values[kStrip];
  const auto input = [&](size_t k) {
    return [at = job.inputs[k] + offset](size_t i) { return At<Element>(at, i); };
  };
  if (job.inputs.size() == 2 && job.outputs.size() <= 2 && (job.divisor == 0 || job.divisor == 2)) {
    return PairOfPlain<Element>(job, offset, n);
  }
  Apply(job.op, values, n, input(0), input(1));
  for (size_t k = 2; k < job.inputs.size(); ++k) {
    Apply(
        job.op, values, n, [&](size_t i) { return values[i]; }, input(k));
  }
  if (job.divisor != 0) Divide(values, n, job.divisor);
  CopyOut(job, offset, values, n);
}

// Elements that are converted: each loop of a conversion is compiled once, and not once more for
// every operation.
template <typename Element>
TUTTI_INLINE void StripOfConverted(const Job& job, size_t offset, size_t n) {
  using Stored = typename Element::Stored;
  using Value = typename Element::Value;
  alignas(64) Value values[kStrip];
  alignas(64) Value next[kStrip];
  alignas(64) Stored results[kStrip];
  const std::byte* const first = job.inputs[0] + offset;
  for (size_t i = 0; i < n; ++i) values[i] = At<Element>(first, i);
  for (const std::byte* const input : job.inputs.subspan(1)) {
    const std::byte* const at = input + offset;
    for (size_t i = 0; i < n; ++i) next[i] = At<Element>(at, i);
    Apply(
        job.op, values, n, [&](size_t i) { return values[i]; }, [&](size_t i) { return next[i]; });
  }
  if (job.divisor != 0) Divide(values, n, job.divisor);
  for (size_t i = 0; i < n; ++i) results[i] = Element::Store(values[i]);
  CopyOut(job, offset, results, n);
}

// To be written where the result goes to the same place. What only others write is asked for as
// it is: taken for writing, it would have to be fetched back by them.
TUTTI_INLINE void Prefetch(const Job& job, size_t begin, size_t end) {
  for (size_t k = 0; k < job.inputs.size(); ++k) {
    const std::byte* const input = job.inputs[k];
    if (k < job.outputs.size() && job.outputs[k] == input) {
      for (size_t at = begin; at < end; at += 64) __builtin_prefetch(input + at, 1);
    } else {
      for (size_t at = begin; at < end; at += 64) __builtin_prefetch(input + at, 0);
    }
  }
}

template <typename Element>
TUTTI_INLINE void Loop(const Job& job) {
  using Stored = typename Element::Stored;
  const size_t bytes = job.count * sizeof(Stored);
  const size_t strip = bytes > kCached ? kAhead : kStrip * sizeof(Stored);
  for (size_t offset = 0; offset < bytes; offset += strip) {
    if (bytes > kCached) Prefetch(job, offset + kAhead, std::min(bytes, offset + 2 * kAhead));
    const size_t n = std::min(strip, bytes - offset) / sizeof(Stored);
    if constexpr (std::is_same_v<Element, Plain<Stored>>) {
      StripOfPlain<Element>(job, offset, n);
    } else {
      StripOfConverted<Element>(job, offset, n);
    }
  }
}

TUTTI_INLINE void Run(DataType type, const Job& job) {
  switch (type) {
    case DataType::kFloat64:
      return Loop<Plain<double>>(job);
    case DataType::kFloat32:
      return Loop<Plain<float>>(job);
    case DataType::kFloat16:
      return Loop<Float16>(job);
    case DataType::kBFloat16:
      return Loop<BFloat16>(job);
    case DataType::kInt64:
      return Loop<Plain<int64_t>>(job);
    case DataType::kInt32:
      return Loop<Plain<int32_t>>(job);
    case DataType::kInt16:
      return Loop<Plain<int16_t>>(job);
    case DataType::kInt8:
      return Loop<Plain<int8_t>>(job);
    case DataType::kUint8:
      return Loop<Plain<uint8_t>>(job);
    case DataType::kBool:
      return Loop<Bool>(job);
  }
}

}  // namespace

void Combine(const Reduction& reduction, std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs, size_t count, bool last) {
  const Reduction what = reduction.type == DataType::kBool ? Logical(reduction) : reduction;
  const bool divides = last && what.op == ReduceOp::kMean;
  const Job job = {what.op, inputs, outputs, count, divides ? what.ranks : 0};
  base::Vectorised([&]() TUTTI_INLINE_BODY { Run(what.type, job); });
}

}  // namespace tutti::comm
