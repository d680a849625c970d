#include "platform/flow/distribution.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::flow {
namespace {

using spec::SearchKind;
using spec::SearchParameter;

constexpr double kSqrt2 = 1.4142135623730951;
constexpr double kSqrt2Pi = 2.5066282746310002;

double NormalCdf(double x) { return 0.5 * std::erfc(-x / kSqrt2); }

bool IsRounded(SearchKind kind) {
  return kind == SearchKind::kQUniform || kind == SearchKind::kQLogUniform ||
         kind == SearchKind::kQNormal || kind == SearchKind::kQLogNormal;
}

bool IsNormal(SearchKind kind) {
  return kind == SearchKind::kNormal || kind == SearchKind::kQNormal ||
         kind == SearchKind::kLogNormal || kind == SearchKind::kQLogNormal;
}

bool IsLog(SearchKind kind) {
  return kind == SearchKind::kLogUniform || kind == SearchKind::kQLogUniform ||
         kind == SearchKind::kLogNormal || kind == SearchKind::kQLogNormal;
}

int64_t IndexAt(double u, int64_t count) {
  return std::clamp<int64_t>(static_cast<int64_t>(u * static_cast<double>(count)), 0, count - 1);
}

// Multiples of q as people write them: 0.3 and not 0.30000000000000004.
double Rounded(double value, double q) {
  const double rounded = std::round(value / q) * q;
  double short_one = rounded;
  if (absl::SimpleAtod(absl::StrFormat("%.12g", rounded), &short_one)) return short_one;
  return rounded;
}

}  // namespace

// Acklam's rational approximation (relative error 1.2e-9), then one step of Halley's method.
double NormalQuantile(double u) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  constexpr double kLow = 0.02425;
  double x;
  if (u < kLow || u > 1 - kLow) {
    const double q = std::sqrt(-2 * std::log(u < kLow ? u : 1 - u));
    x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
        ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    if (u > 1 - kLow) x = -x;
  } else {
    const double q = u - 0.5, r = q * q;
    x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  const double error = NormalCdf(x) - u;
  const double step = error * kSqrt2Pi * std::exp(x * x / 2);
  return x - step / (1 + x * step / 2);
}

std::string NumberText(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // e, inf, nan
  return text;
}

std::string ValueAt(const SearchParameter& p, double u, double log_base) {
  if (p.kind == SearchKind::kChoice) return p.values[IndexAt(u, std::ssize(p.values))];
  if (p.kind == SearchKind::kRandInt) return absl::StrCat(IndexAt(u, p.upper));
  double value =
      IsNormal(p.kind) ? p.mu + p.sigma * NormalQuantile(u) : p.low + u * (p.high - p.low);
  if (IsLog(p.kind)) value = std::pow(log_base, value);
  if (IsRounded(p.kind)) value = Rounded(value, p.q);
  return NumberText(value);
}

std::optional<double> QuantileOf(const SearchParameter& p, absl::string_view value,
                                 double log_base) {
  if (p.kind == SearchKind::kChoice) {
    const auto found = std::find(p.values.begin(), p.values.end(), value);
    if (found == p.values.end()) return std::nullopt;
    return (static_cast<double>(found - p.values.begin()) + 0.5) /
           static_cast<double>(p.values.size());
  }
  double number = 0;
  if (!absl::SimpleAtod(value, &number)) return std::nullopt;
  if (p.kind == SearchKind::kRandInt) return (number + 0.5) / static_cast<double>(p.upper);
  if (IsLog(p.kind)) number = std::log(std::max(number, 1e-300)) / std::log(log_base);
  const double u = IsNormal(p.kind) ? NormalCdf((number - p.mu) / p.sigma)
                   : p.high > p.low ? (number - p.low) / (p.high - p.low)
                                    : 0.5;
  return std::clamp(u, 0.0, 1.0);
}

int64_t CountOf(const SearchParameter& p) {
  if (p.kind == SearchKind::kChoice) return std::ssize(p.values);
  return p.kind == SearchKind::kRandInt ? p.upper : 0;
}

}  // namespace tutti::flow
